"""The few names of Pillow that timm imports; see tests/stand_ins/torchvision, which would bring the real one."""

__version__ = "11.0.0"
