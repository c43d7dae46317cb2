"""Puts this folder on the path, so that tests can import its shared modules; and sets what all tests compare with."""

import torch

# Eager's convolutions on a CPU, which results are compared with, do not round to TF32, as cuDNN's do by default.
torch.backends.cudnn.allow_tf32 = False
