#!/usr/bin/env python3
"""Trains the decoder of this folder on rhymes.txt and writes decoder.onnx and vocabulary.txt.

Needs Debian's python3-torch and python3-onnx; to run the model needs neither. The network is a small Llama: rotary
positions, grouped heads, RMS norms, SwiGLU. Its inputs and outputs have the names that Hugging Face's exporter gives
them. A token is a character. Fixed seeds and one thread: the same machine gives the same model each time.
"""
import pathlib

import onnx
import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
HIDDEN, INNER, HEADS, KV_HEADS, LAYERS = 96, 256, 4, 2, 2
SIZE = HIDDEN // HEADS
# Windows of the text, how many in a step, steps, the highest learning rate. Long windows cost most, so they come last.
PHASES = ((96, 16, 1000, 3e-3), (224, 8, 150, 1.5e-3))
MOST_LOSS = 0.2


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x, cosines, sines):
    turned = torch.cat([-x[..., SIZE // 2:], x[..., : SIZE // 2]], -1)
    return x * cosines + turned * sines


def repeated(x):
    """Gives each head of keys or values to several heads of queries."""
    x = x[:, :, None].expand(-1, -1, HEADS // KV_HEADS, -1, -1)
    return x.reshape(x.size(0), HEADS, x.size(3), SIZE)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.output = nn.Linear(HIDDEN, HIDDEN, False), nn.Linear(HIDDEN, HIDDEN, False)
        self.key, self.value = (nn.Linear(HIDDEN, KV_HEADS * SIZE, False) for _ in range(2))

    def forward(self, x, angles, mask, past):
        query, key, value = (
            project(x).view(x.size(0), x.size(1), -1, SIZE).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        query, key = rotated(query, *angles), rotated(key, *angles)
        present = key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        key, value = (repeated(each) for each in present)
        scores = query @ key.transpose(-1, -2) / SIZE**0.5
        scores = torch.where(mask, scores, torch.full((), torch.finfo(scores.dtype).min))
        context = (torch.softmax(scores, -1) @ value).transpose(1, 2)
        return self.output(context.reshape(context.size(0), context.size(1), HIDDEN)), present


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.before_attention, self.before_network = Attention(), Norm(), Norm()
        self.gate, self.widen = nn.Linear(HIDDEN, INNER, False), nn.Linear(HIDDEN, INNER, False)
        self.narrow = nn.Linear(INNER, HIDDEN, False)

    def forward(self, x, angles, mask, past):
        attended, present = self.attention(self.before_attention(x), angles, mask, past)
        x = x + attended
        inner = self.before_network(x)
        return x + self.narrow(functional.silu(self.gate(inner)) * self.widen(inner)), present


class Decoder(nn.Module):
    """input_ids and position_ids [batch, length], attention_mask [batch, past + length], keys and values of the past
    [batch, heads, past, size] -> logits [batch, length, vocabulary], keys and values of past and present."""

    def __init__(self, vocabulary):
        super().__init__()
        self.words = nn.Embedding(vocabulary, HIDDEN)  # which are also the columns of the last product
        nn.init.normal_(self.words.weight, std=HIDDEN**-0.5)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), Norm()
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, SIZE, 2) / SIZE))

    def forward(self, input_ids, attention_mask, position_ids, *past):
        angles = position_ids[:, None, :, None] * self.frequencies
        angles = torch.cat([angles, angles], -1)
        total = attention_mask.size(1)
        places = torch.arange(total)
        is_before = places[None, :] <= places[total - input_ids.size(1):, None]
        mask = is_before & (attention_mask[:, None, None, :] != 0)
        x, presents = self.words(input_ids), []
        for i, block in enumerate(self.blocks):
            x, present = block(x, (angles.cos(), angles.sin()), mask, past[2 * i : 2 * i + 2])
            presents += present
        return (functional.linear(self.norm(x), self.words.weight), *presents)


def inputs_for(ids, past=0):
    batch, length = ids.shape
    caches = [torch.zeros(batch, KV_HEADS, past, SIZE) for _ in range(2 * LAYERS)]
    positions = torch.arange(past, past + length).expand(batch, length)
    return (ids, torch.ones(batch, past + length, dtype=torch.int64), positions, *caches)


def train(model, ids, window, batch, steps, rate):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps)
    mean_loss = 0.0
    for step in range(steps):
        begins = torch.randint(0, len(ids), (batch, 1))
        rows = ids[(begins + torch.arange(window + 1)) % len(ids)]  # after the last rhyme comes the first one
        logits = model(*inputs_for(rows[:, :-1]))[0]
        loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        mean_loss = loss.item() if step == 0 else 0.95 * mean_loss + 0.05 * loss.item()
        if step % 50 == 49:
            print(f"windows of {window}, step {step + 1}: loss {mean_loss:.3f}", flush=True)
    return mean_loss


def export(model, path):
    caches = [f"{i}.{part}" for i in range(LAYERS) for part in ("key", "value")]
    past, total = "past_sequence_length", "past_sequence_length + sequence_length"
    dims = {name: {0: "batch_size", 1: "sequence_length"} for name in ("input_ids", "position_ids", "logits")}
    dims["attention_mask"] = {0: "batch_size", 1: total}
    dims.update({f"past_key_values.{name}": {0: "batch_size", 2: past} for name in caches})
    dims.update({f"present.{name}": {0: "batch_size", 2: total} for name in caches})
    torch.onnx.export(
        model,
        inputs_for(torch.zeros(2, 3, dtype=torch.int64), past=5),
        path,
        opset_version=17,
        input_names=["input_ids", "attention_mask", "position_ids", *(f"past_key_values.{name}" for name in caches)],
        output_names=["logits", *(f"present.{name}" for name in caches)],
        dynamic_axes=dims,
    )
    exported = onnx.load(path)
    exported.doc_string = "nursery rhymes by characters, trained by examples/decoder/train.py"
    onnx.checker.check_model(exported)
    onnx.save(exported, path)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    text = (HERE / "rhymes.txt").read_text()
    vocabulary = sorted(set(text))
    # One token in each line; a line break is written as in C.
    (HERE / "vocabulary.txt").write_text("".join(repr(c)[1:-1] + "\n" if c == "\n" else c + "\n" for c in vocabulary))
    ids = torch.tensor([vocabulary.index(character) for character in text])
    model = Decoder(len(vocabulary))
    print(f"{len(ids)} characters, {len(vocabulary)} tokens, {sum(p.numel() for p in model.parameters())} weights")
    for phase in PHASES:
        loss = train(model, ids, *phase)
    if loss > MOST_LOSS:
        raise SystemExit(f"the loss is {loss:.3f}, expected at most {MOST_LOSS}")
    export(model.eval(), str(HERE / "decoder.onnx"))


if __name__ == "__main__":
    main()
