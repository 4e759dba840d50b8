"""A decoder of transformers as one ONNX file, and text generated with it by plain onnxruntime: the same tokens."""

import numpy as np
import onnxruntime
import torch
import transformers

from anyshape import sources

NEW_TOKENS = 12


def write_model(folder):
    """A small Llama with random weights, in the place of one that you have."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=None,
        initializer_range=0.3,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def generate(session, ids, mask, new_tokens):
    """Greedy search. The first call has an empty past; every later one the tokens of the call before, and its cache."""
    caches = [each for each in session.get_inputs() if each.name.startswith("past_key_values.")]
    past = {each.name: np.zeros((len(ids), each.shape[1], 0, each.shape[3]), np.float32) for each in caches}
    names = [each.name for each in session.get_outputs()]
    step = ids
    for _ in range(new_tokens):
        positions = np.maximum(mask.cumsum(1) - 1, 0)[:, -step.shape[1] :]
        outputs = session.run(None, {"input_ids": step, "attention_mask": mask, "position_ids": positions, **past})
        outputs = dict(zip(names, outputs, strict=True))
        step = outputs["logits"][:, -1:].argmax(-1)
        ids, mask = np.hstack([ids, step]), np.hstack([mask, np.ones_like(step)])
        past = {name: outputs[name.replace("past_key_values", "present")] for name in past}
    return ids


write_model("llama")
result = sources.export("hf:llama", "llama.onnx")
print(*result.files[0].contract.inputs[:3], sep="\n")

ids = np.array([[0, 0, 5, 17, 8], [3, 44, 9, 61, 7]])  # the first text is shorter: padding on its left
mask = (ids != 0).astype(np.int64)
actual = generate(onnxruntime.InferenceSession("llama.onnx"), ids, mask, NEW_TOKENS)

model = transformers.LlamaForCausalLM.from_pretrained("llama").eval()
expected = model.generate(
    torch.from_numpy(ids), attention_mask=torch.from_numpy(mask), max_new_tokens=NEW_TOKENS, do_sample=False
)
print(
    f"{actual.shape[1] - ids.shape[1]} new tokens, the same as transformers: {np.array_equal(actual, expected.numpy())}"
)
