"""The few names of torchvision that timm imports, for machines on which torchvision cannot be installed.

timm imports torchvision for its data loading and for one layer. Models are built and called without any of it: whatever is
used from here beyond importing raises.
"""
