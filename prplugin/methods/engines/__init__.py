"""Parts that several methods share: steps around a pull, batches of seeds, and layouts."""
