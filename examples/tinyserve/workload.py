"""A stream of requests that depends on nothing but its seed: Poisson arrivals, prompts and answers of varying length."""

import random


class Request:
    """One prompt and what became of it. Times are seconds since the stream began; None: not yet."""

    def __init__(self, rid, arrival, prompt, max_new_tokens):
        self.rid = rid
        self.arrival = arrival
        self.prompt = prompt
        self.max_new_tokens = max_new_tokens
        self.slot = None
        self.output = []
        self.scheduled = None
        self.first_token = None
        self.finish = None

    @property
    def done(self):
        return len(self.output) >= self.max_new_tokens


def request_stream(count, rate, seed, vocabulary, prompt_tokens=(8, 40), new_tokens=(16, 64)):
    """`count` requests in the order of their arrival; `rate` per second on average, 0: all at once."""
    generator = random.Random(seed)
    clock = 0.0
    for rid in range(count):
        gap = generator.expovariate(1.0)
        clock += gap / rate if rate > 0 else 0.0
        prompt = [generator.randrange(vocabulary) for _ in range(generator.randint(*prompt_tokens))]
        yield Request(rid, clock, prompt, generator.randint(*new_tokens))
