"""From PyTorch programs to the prim dialect."""
