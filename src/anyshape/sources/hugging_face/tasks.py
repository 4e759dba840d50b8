"""Tasks by the names that optimum has for them, and the classes of transformers that do them."""

from __future__ import annotations

WITH_PAST = "-with-past"

TASKS: dict[str, tuple[str, ...]] = {
    "feature-extraction": ("AutoModel",),
    "fill-mask": ("AutoModelForMaskedLM",),
    "text-classification": ("AutoModelForSequenceClassification",),
    "token-classification": ("AutoModelForTokenClassification",),
    "question-answering": ("AutoModelForQuestionAnswering",),
    "text-generation": ("AutoModelForCausalLM",),
    "text-generation-with-past": ("AutoModelForCausalLM",),
    "text2text-generation": ("AutoModelForSeq2SeqLM",),
    "text2text-generation-with-past": ("AutoModelForSeq2SeqLM",),
    "automatic-speech-recognition": ("AutoModelForCTC", "AutoModelForSpeechSeq2Seq"),
    "automatic-speech-recognition-with-past": ("AutoModelForSpeechSeq2Seq",),
    "audio-classification": ("AutoModelForAudioClassification",),
    "audio-frame-classification": ("AutoModelForAudioFrameClassification",),
    "audio-xvector": ("AutoModelForAudioXVector",),
    "image-classification": ("AutoModelForImageClassification",),
    "image-segmentation": ("AutoModelForSemanticSegmentation", "AutoModelForImageSegmentation"),
    "object-detection": ("AutoModelForObjectDetection",),
    "depth-estimation": ("AutoModelForDepthEstimation",),
    "zero-shot-image-classification": ("AutoModelForZeroShotImageClassification",),
}
"""Task -> the automatic classes that may do it, in the order in which they are tried."""


def has_cache(task: str | None) -> bool:
    """Whether a generating model gets its cache: by default, or where the task's name says so."""
    return task is None or task.endswith(WITH_PAST)
