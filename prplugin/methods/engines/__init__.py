"""What several methods share: steps around a pull, batches of seeds, and layouts."""
