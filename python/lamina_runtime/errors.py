"""The errors of the runtime, beside those that eager PyTorch raises."""


class PackageError(ValueError):
    """A package that is damaged, not complete, of another format, or not for this device."""


class DriverError(RuntimeError):
    """The device, its driver, or what is missing of them."""
