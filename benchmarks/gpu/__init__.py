"""Packages beside eager PyTorch and torch.compile on a GPU: built on any machine, run by scripts/gpu_check."""
