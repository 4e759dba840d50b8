"""Classes without content: importing them and deriving from them works, making one raises."""

from torchvision.transforms import functional  # noqa: F401


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"torchvision.transforms.{name} is a stand-in: install torchvision")

    return type(name, (), {"__init__": refuse})
