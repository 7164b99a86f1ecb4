"""The methods of five papers, each with its own .cu file."""
