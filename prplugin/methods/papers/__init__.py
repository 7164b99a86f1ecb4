"""The methods of the five published systems, each with its own .cu file."""
