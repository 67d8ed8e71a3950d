"""Networks that torchvision does not have, written for the benchmark: transformers, recurrent ones, U-nets.

Each follows the form in which the well-known one of its kind is exported, so that its graph has the same nodes.
"""
import torch
from torch import nn
from torch.nn import functional


class Pick(nn.Module):
    """A network of which one output counts."""

    def __init__(self, model, key):
        super().__init__()
        self.model, self.key = model, key

    def forward(self, *inputs):
        return self.model(*inputs)[self.key]


class Detector(nn.Module):
    """A detector of torchvision takes a list of images and returns a dict each; this one takes one image."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        found = self.model([image])[0]
        return found["boxes"], found["scores"], found["labels"]


class UNet(nn.Module):
    """Ronneberger's encoder and decoder; `grow` is what doubles a map: a transposed convolution or a resize."""

    def __init__(self, grow, channels=(32, 64, 128, 256, 512), classes=2):
        super().__init__()
        wide_to_narrow = list(zip(channels[:0:-1], channels[-2::-1]))
        self.down = nn.ModuleList(self.two(a, b) for a, b in zip((3, *channels), channels))
        self.grow = nn.ModuleList(grow(wide, narrow) for wide, narrow in wide_to_narrow)
        self.up = nn.ModuleList(self.two(2 * narrow, narrow) for _, narrow in wide_to_narrow)
        self.head = nn.Conv2d(channels[0], classes, 1)

    @staticmethod
    def two(inputs, outputs):
        return nn.Sequential(*(layer for source in (inputs, outputs) for layer in (
            nn.Conv2d(source, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())))

    @staticmethod
    def bilinear(wide, narrow):
        grow = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        return nn.Sequential(grow, nn.Conv2d(wide, narrow, 1))

    @staticmethod
    def transposed(wide, narrow):
        return nn.ConvTranspose2d(wide, narrow, 2, stride=2)

    def forward(self, x):
        seen = []
        for i, block in enumerate(self.down):
            x = block(functional.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for grow, block, skip in zip(self.grow, self.up, seen[-2::-1]):
            x = block(torch.cat([skip, grow(x)], 1))
        return self.head(x)


class SuperResolution(nn.Sequential):
    """ESPCN: convolutions at the small size, then a pixel shuffle."""

    def __init__(self, scale=3):
        super().__init__(
            nn.Conv2d(1, 64, 5, padding=2), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, scale**2, 3, padding=1), nn.PixelShuffle(scale))


class Encoder(nn.Module):
    """One transformer layer after BERT: self attention and a GELU network, each with a residual and a layer norm."""

    def __init__(self, hidden, heads, inner):
        super().__init__()
        self.hidden, self.heads, self.head_size = hidden, heads, hidden // heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.attended = nn.Linear(hidden, hidden)
        self.attended_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.widen = nn.Linear(hidden, inner)
        self.narrow = nn.Linear(inner, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)

    def split_heads(self, x):
        return x.view(*x.size()[:-1], self.heads, self.head_size).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        query, key, value = (self.split_heads(project(x)) for project in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / self.head_size**0.5
        context = torch.softmax(scores + mask, dim=-1) @ value
        context = context.permute(0, 2, 1, 3).contiguous()
        context = context.view(*context.size()[:-2], self.hidden)
        x = self.attended_norm(self.attended(context) + x)
        return self.output_norm(self.narrow(nn.functional.gelu(self.widen(x))) + x)


class Bert(nn.Module):
    """input_ids, attention_mask: int64 [batch, sequence] -> [batch, sequence, hidden] and pooled [batch, hidden]."""

    def __init__(self, vocabulary=2000, positions=512, hidden=256, heads=4, inner=1024, layers=2):
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(Encoder(hidden, heads, inner) for _ in range(layers))
        self.pooler = nn.Linear(hidden, hidden)
        # As in the well-known exports: position and type ids are stored rows, cut to the sequence at run time.
        self.register_buffer("position_ids", torch.arange(positions)[None])
        self.register_buffer("type_ids", torch.zeros(1, positions, dtype=torch.int64))

    def forward(self, input_ids, attention_mask):
        length = input_ids.size(1)
        types = self.type_ids[:, :length].expand(input_ids.size(0), length)
        x = self.words(input_ids) + self.types(types) + self.positions(self.position_ids[:, :length])
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class RootMeanSquareNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Rotary(nn.Module):
    """Rotates halves of each head by angles of the position (Su et al.)."""

    def __init__(self, size, positions=2048):
        super().__init__()
        angles = torch.arange(positions)[:, None] / 10000 ** (torch.arange(0, size, 2) / size)
        angles = torch.cat([angles, angles], 1)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, x, begin):
        end, half = begin + x.size(2), x.size(3) // 2
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * self.cosines[begin:end] + turned * self.sines[begin:end]


class Attention(nn.Module):
    """Attention over past and present keys and values [batch, heads, length, size], which it returns."""

    def __init__(self, hidden, heads, kv_heads=None, bias=True, fused=False, rotary=False):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads or heads, hidden // heads
        narrow = self.kv_heads * self.size
        widths = [hidden + 2 * narrow] if fused else [hidden, narrow, narrow]
        self.project = nn.ModuleList(nn.Linear(hidden, width, bias) for width in widths)
        self.widths = [hidden, narrow, narrow]
        self.output = nn.Linear(hidden, hidden, bias)
        self.rotary = Rotary(self.size) if rotary else None

    def split(self, x):
        return x.view(x.size(0), x.size(1), -1, self.size).transpose(1, 2)

    def repeated(self, x):
        if self.kv_heads == self.heads:
            return x
        x = x[:, :, None].expand(-1, -1, self.heads // self.kv_heads, -1, -1)
        return x.reshape(x.size(0), self.heads, x.size(3), self.size)

    def over(self, query, key, value, mask=None):
        scores = query @ self.repeated(key).transpose(-1, -2) / self.size**0.5
        if mask is not None:
            scores = torch.where(mask, scores, torch.full((), torch.finfo(scores.dtype).min))
        context = (torch.softmax(scores, -1) @ self.repeated(value)).transpose(1, 2)
        return self.output(context.reshape(context.size(0), context.size(1), -1))

    def forward(self, x, past=None, mask=None):
        parts = [project(x) for project in self.project]
        query, key, value = map(self.split, parts[0].split(self.widths, -1) if len(parts) == 1 else parts)
        if self.rotary:
            begin = past[0].size(2) if past else 0
            query, key = self.rotary(query, begin), self.rotary(key, begin)
        if past:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        return self.over(query, key, value, mask), (key, value)

    def across(self, x, source):
        """Attention over keys and values that are there already, of another sequence."""
        return self.over(self.split(self.project[0](x)), *source)


class TanhGelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3))))


class GatedNetwork(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate, self.widen = nn.Linear(hidden, inner, False), nn.Linear(hidden, inner, False)
        self.narrow = nn.Linear(inner, hidden, False)

    def forward(self, x):
        return self.narrow(functional.silu(self.gate(x)) * self.widen(x))


def network(hidden, inner, activation):
    return nn.Sequential(nn.Linear(hidden, inner), activation(), nn.Linear(inner, hidden))


class Block(nn.Module):
    """Attention, attention over another sequence where there is one, and a network, each after a norm."""

    def __init__(self, hidden, attention, inner_network, norm=nn.LayerNorm, across=None):
        super().__init__()
        self.attention, self.network, self.across = attention, inner_network, across
        self.norms = nn.ModuleList(norm(hidden) for _ in range(3 if across else 2))

    def forward(self, x, past=None, mask=None, source=None):
        attended, present = self.attention(self.norms[0](x), past, mask)
        x = x + attended
        if self.across:
            x = x + self.across.across(self.norms[2](x), source)
        return x + self.network(self.norms[1](x)), present


class Decoder(nn.Module):
    """A language model: ids [batch, length], then keys and values of each layer's past, then those of a source, where
    there is one -> logits over the vocabulary, then keys and values of past and present."""

    def __init__(self, vocabulary, hidden, blocks, norm=nn.LayerNorm, positions=0, longest=1024):
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden) if positions else None
        self.blocks, self.norm = nn.ModuleList(blocks), norm(hidden)
        self.register_buffer("causal", torch.ones(longest, longest, dtype=torch.bool).tril())

    def forward(self, ids, *cached):
        count = 2 * len(self.blocks)
        past, source = cached[:count], cached[count:]
        begin = past[0].size(2) if past else 0
        end = begin + ids.size(1)
        x = self.words(ids)
        if self.positions:
            x = x + self.positions.weight[begin:end]
        mask = self.causal[begin:end, :end]
        present = []
        for i, block in enumerate(self.blocks):
            two = slice(2 * i, 2 * i + 2)
            x, made = block(x, past[two], mask, source[two])
            present += made
        return (functional.linear(self.norm(x), self.words.weight), *present)


def gpt2(hidden=768, heads=12, layers=12, vocabulary=50257):
    blocks = (Block(hidden, Attention(hidden, heads, fused=True), network(hidden, 4 * hidden, TanhGelu))
              for _ in range(layers))
    return Decoder(vocabulary, hidden, blocks, positions=1024)


def llama(hidden=1024, heads=16, kv_heads=4, inner=2816, layers=8, vocabulary=32000):
    blocks = (Block(hidden, Attention(hidden, heads, kv_heads, bias=False, rotary=True), GatedNetwork(hidden, inner),
                    RootMeanSquareNorm) for _ in range(layers))
    return Decoder(vocabulary, hidden, blocks, RootMeanSquareNorm)


def whisper_decoder(hidden=512, heads=8, layers=6, vocabulary=51865):
    blocks = (Block(hidden, Attention(hidden, heads), network(hidden, 4 * hidden, nn.GELU),
                    across=Attention(hidden, heads)) for _ in range(layers))
    return Decoder(vocabulary, hidden, blocks, positions=448, longest=448)


class WhisperEncoder(nn.Module):
    """mel spectrum [batch, 80, frames] -> [batch, frames / 2, hidden]"""

    def __init__(self, hidden=512, heads=8, layers=6, mels=80):
        super().__init__()
        self.first = nn.Conv1d(mels, hidden, 3, padding=1)
        self.second = nn.Conv1d(hidden, hidden, 3, stride=2, padding=1)
        self.positions = nn.Embedding(1500, hidden)
        self.blocks = nn.ModuleList(
            Block(hidden, Attention(hidden, heads), network(hidden, 4 * hidden, nn.GELU)) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, mel):
        x = functional.gelu(self.second(functional.gelu(self.first(mel)))).permute(0, 2, 1)
        x = x + self.positions.weight[: x.size(1)]
        for block in self.blocks:
            x, _ = block(x)
        return self.norm(x)


class Wav2Vec(nn.Module):
    """samples [batch, samples] -> [batch, frames, 32]: strided 1-d convolutions, a grouped one as positions, layers."""

    def __init__(self, hidden=512, heads=8, layers=4, classes=32):
        super().__init__()
        kernels_and_strides = [(10, 5), *[(3, 2)] * 4, *[(2, 2)] * 2]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(hidden if i else 1, hidden, kernel, stride, bias=False)
            for i, (kernel, stride) in enumerate(kernels_and_strides))
        self.group_norm = nn.GroupNorm(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.positions = nn.Conv1d(hidden, hidden, 128, padding=64, groups=16)
        self.blocks = nn.ModuleList(
            Block(hidden, Attention(hidden, heads), network(hidden, 4 * hidden, nn.GELU)) for _ in range(layers))
        self.head = nn.Linear(hidden, classes)

    def forward(self, samples):
        x = samples[:, None]
        for i, convolution in enumerate(self.convolutions):
            x = convolution(x)
            x = functional.gelu(x if i else self.group_norm(x))
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        x = (x + functional.gelu(self.positions(x)[:, :, :-1])).transpose(1, 2)
        for block in self.blocks:
            x, _ = block(x)
        return self.head(x)


class RecurrentLanguageModel(nn.Module):
    def __init__(self, vocabulary=10000, hidden=512, layers=2):
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.layers = nn.LSTM(hidden, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, ids, hidden, cell):
        x, (hidden, cell) = self.layers(self.words(ids), (hidden, cell))
        return self.head(x), hidden, cell


class FrameTagger(nn.Module):
    """features [batch, frames, 80] -> [batch, frames, 40], by gated units in both directions"""

    def __init__(self, features=80, hidden=256, layers=2, classes=40):
        super().__init__()
        self.layers = nn.GRU(features, hidden, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, features):
        return self.head(self.layers(features)[0])
