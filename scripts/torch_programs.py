"""What scripts/test-torch measures: a small transformer that is trained, and one that generates with a key-value cache, both under torch.profiler."""

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import culprit.torch

STEPS = 40  # of a training
REQUESTS, TOKENS, PROMPT = 4, 16, 24
WIDTH, HEADS, VOCABULARY = 64, 4, 512


class Model(torch.nn.Module):
    """Trained. `slow` does work for nothing in the first layer, `added` ends with one operator more."""

    def __init__(self, slow=0, added=False):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 128, dropout=0.0, batch_first=True) for _ in range(2))
        self.slow, self.added = slow, added

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i == 0:
                for _ in range(self.slow):
                    x = x + torch.matmul(x, torch.eye(WIDTH)) * 0
        return torch.logcumsumexp(x, dim=1) if self.added else x


class Layer(torch.nn.Module):
    """Attends to what its cache holds, and adds to it."""

    def __init__(self):
        super().__init__()
        self.norm, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, at, mask, keys, values):
        query, key, value = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, dim=2))
        keys.index_copy_(2, at, key)
        values.index_copy_(2, at, value)
        attended = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class Decoder(torch.nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Linear(WIDTH, VOCABULARY)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, tokens, at, cache):
        x = self.embed(tokens)
        mask = torch.arange(cache[0][0].shape[2])[None, :] <= at[:, None]
        for layer, (keys, values) in zip(self.layers, cache):
            x = layer(x, at, mask, keys, values)
        return self.head(x[:, -1])

    def cache(self, batch):
        return [tuple(torch.zeros(batch, HEADS, PROMPT + TOKENS, WIDTH // HEADS) for _ in range(2)) for _ in self.layers]


def generate(decoder, forward, batch=2):
    """One request: its prompt, then token by token."""
    tokens = torch.randint(VOCABULARY, (batch, PROMPT))
    at, cache = torch.arange(PROMPT), decoder.cache(batch)
    for token in range(TOKENS):
        with record_function("decode" if token else "prefill"):
            logits = forward(tokens, at, cache)
            tokens = torch.multinomial(torch.softmax(logits, dim=1), 1)
            at = torch.tensor([PROMPT + token])


def plain_python(rounds):
    total = 0
    for i in range(rounds):
        total += i * i
    return total


class Traced:
    """A program that ran under torch.profiler: its trace, and what key_averages() says of it."""

    def __init__(self, handler, averages):
        self.path, self.run, self.averages = handler.paths[0], handler.runs[0], averages


def profiled(folder, work, stacks=False, shapes=False, **options):
    """`work(profiler)` under torch.profiler."""
    handler = culprit.torch.trace_handler(folder, summary=False)
    averages = []

    def ready(profiler):
        averages.append(profiler.key_averages())
        handler(profiler)

    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=ready, with_stack=stacks, record_shapes=shapes, **options) as profiler:
        work(profiler)
    return Traced(handler, averages[0])


def training(folder, model=None, compiled=False, stacks=False, shapes=False, python=0, each=lambda step: None):
    """`each(step)` is called at the end of every step; steps below 0 are not in the trace."""
    torch.manual_seed(1)
    model = model or Model()
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    data = torch.randn(8, 32, WIDTH)

    def step():
        with record_function("forward"):
            loss = forward(data).square().mean()
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        plain_python(python)

    def work(profiler):
        for i in range(STEPS + 3):
            step()
            each(i - 3)
            profiler.step()

    step()  # compiles
    return profiled(folder, work, stacks, shapes, schedule=schedule(wait=1, warmup=2, active=STEPS))


def generation(folder, compiled=False, stacks=False, shapes=False):
    torch.manual_seed(1)
    decoder = Decoder()
    forward = torch.compile(decoder) if compiled else decoder
    with torch.no_grad():
        generate(decoder, forward)  # compiles
        return profiled(folder, lambda profiler: [generate(decoder, forward) for _ in range(REQUESTS)], stacks, shapes)


def one_pass(folder, layers=12):
    """Layers alone: nothing that a program of steps repeats."""
    decoder = Decoder(layers)
    with torch.no_grad():
        return profiled(folder, lambda profiler: decoder(torch.randint(VOCABULARY, (2, PROMPT)), torch.arange(PROMPT), decoder.cache(2)))
