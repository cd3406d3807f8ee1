"""Turn GGUF weights into the folder that vLLM loads: `python convert.py WEIGHTS.gguf FOLDER`, by a Python with vLLM."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"


def main(weights: Path, folder: Path) -> None:
    """Tensors in bfloat16, tokenizer and chat template. The folder appears whole or not at all."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    if not tokenizer.chat_template:
        sys.exit(f"{weights}: no chat template")
    model = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype="bfloat16")
    # Saved as loaded, the folder would claim to be quantized, and vLLM would look for GGUF tensors in it.
    del model.hf_quantizer
    del model.config.quantization_config
    aside = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    model.save_pretrained(aside)
    tokenizer.save_pretrained(aside)
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
