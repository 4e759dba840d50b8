"""What anyshape does, in under a minute: three classic models exported and compared, one that cannot be, and its repair."""

import pathlib
import sys
import tempfile

import torch

import anyshape
from anyshape import sources

HERE = pathlib.Path(__file__).parent


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("01_linear", "02_rnn", "03_reshape"):
            print(f"$ anyshape export examples/{name}/model.py -o {name[3:]}.onnx")
            part = sources.load_part(str(HERE / name / "model.py"), "model.onnx")
            path = pathlib.Path(folder) / f"{name[3:]}.onnx"
            result = anyshape.export(part.model, part.inputs, path)
            print(str(result).replace(folder + "/", ""))
            x = part.inputs(batch_size=7)
            difference = (anyshape.load(path)(input=x) - part.model(x)).abs().max()
            proved = "proved" if result.contract.tested.capture_proved else "not proved"
            print(f"  capture {proved}, file compared at {len(result.verdict.tried)} sizes")
            print(f"  at batch_size 7, onnxruntime and PyTorch differ by at most {difference:.1e}\n")

        class Fixed(torch.nn.Module):
            def forward(self, x):
                return x.view(3, 10)

        print("And a model that hides its batch size in a constant, where torch.onnx.export gives a file for 3 alone:")
        try:
            anyshape.export(Fixed(), lambda batch=3: torch.randn(batch, 10), where=["1 <= batch <= 64"])
        except anyshape.PromiseBroken as broken:
            print(broken)

        print(
            "\nThe same with repair=True: the edit of the source, as a diff, and a file that is right at other sizes:"
        )
        path = pathlib.Path(folder) / "repaired.onnx"
        result = anyshape.export(
            Fixed(), lambda batch=3: torch.randn(batch, 10), path, where=["1 <= batch <= 64"], repair=True
        )
        print(result.repair.diff)
        print(*(f"  evidence  {text}" for text in result.repair.evidence), sep="\n")
        for batch in (1, 7, 64):
            x = torch.randn(batch, 10)
            print(f"  at batch {batch}, the file gives x itself: {torch.equal(anyshape.load(path)(x), x)}")


if __name__ == "__main__":
    sys.exit(main())
