"""Is the file right? Run it beside the module at many sizes, compare, and make the failure small."""

from anyshape.verify.reference import Answer, Reference, Refused
from anyshape.verify.request import VerifyOptions, VerifyRequest
from anyshape.verify.run import verify
from anyshape.verify.size_annotations import annotate_sizes

__all__ = ["Answer", "Reference", "Refused", "VerifyOptions", "VerifyRequest", "annotate_sizes", "verify"]
