"""Folders that `anyshape export hf:DIR` writes, loaded by optimum.onnxruntime in an environment of its own.

optimum-onnx needs an older transformers than anyshape, hence two steps with one Python each:

    python benchmarks/sources/optimum_loads.py export FOLDER                      here
    python -m venv .optimum && .optimum/bin/pip install torch==2.13.0 "optimum-onnx[onnxruntime]"
    .optimum/bin/python benchmarks/sources/optimum_loads.py load FOLDER           there

The second step compares what optimum's classes give with the same model in that environment's own transformers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAMES = ("roberta", "gpt2", "llama", "t5")
_IDS = [[5, 17, 8, 61, 9], [3, 44, 9, 61, 7]]
_NEW_TOKENS = 10


def export(folder: Path) -> None:
    """Write the models, and export each with no further word."""
    import tiny_configs

    for name in NAMES:
        model = tiny_configs.write_family(name, folder / "models")
        command = [sys.executable, "-m", "anyshape", "export", f"hf:{model}", "-o", str(folder / name), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(name, done.stdout.partition("\n")[0] or done.stderr)
        print("  ", *sorted(path.name for path in (folder / name).iterdir()))


def load(folder: Path) -> int:
    """Compare logits of the classifier, and tokens that the others generate. 1 if something differs."""
    import optimum.onnxruntime as ort
    import torch
    import transformers

    ids = torch.tensor(_IDS)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    expected = transformers.AutoModelForSequenceClassification.from_pretrained(folder / "models" / "roberta").eval()
    actual = ort.ORTModelForSequenceClassification.from_pretrained(folder / "roberta")
    with torch.no_grad():
        off = (actual(**inputs).logits - expected(**inputs).logits).abs().max().item()
    print(f"ORTModelForSequenceClassification, roberta: logits differ by {off:.1e}")
    results = [off < 1e-3]
    pairs = {
        "gpt2": (ort.ORTModelForCausalLM, transformers.AutoModelForCausalLM),
        "llama": (ort.ORTModelForCausalLM, transformers.AutoModelForCausalLM),
        "t5": (ort.ORTModelForSeq2SeqLM, transformers.AutoModelForSeq2SeqLM),
    }
    for name, (ours, theirs) in pairs.items():
        options = {"max_new_tokens": _NEW_TOKENS, "min_new_tokens": _NEW_TOKENS, "do_sample": False}
        given = ours.from_pretrained(folder / name).generate(**inputs, **options)
        wanted = theirs.from_pretrained(folder / "models" / name).eval().generate(**inputs, **options)
        results.append(torch.equal(given, wanted))
        print(f"{ours.__name__}, {name}: {given.shape[1]} tokens, the same: {results[-1]}, {given[0].tolist()}")
    print(f"optimum loads {sum(results)} of {len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    step, place = sys.argv[1], Path(sys.argv[2])
    sys.exit(export(place) if step == "export" else load(place))
