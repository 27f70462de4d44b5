# The rest of hooks.py, for Python before 3.12. What is exchanged is the code of the function, so that whoever holds the function calls the new one.
import sys

# Of co_flags; what types.coroutine makes of a generator may be awaited.
GENERATOR_FUNCTION, COROUTINE_FUNCTION, MAY_BE_AWAITED, ASYNCHRONOUS_GENERATOR = 0x20, 0x80, 0x100, 0x200

# HEAD, CALL and TAKEN are filled in by own_parameters(). The names in quotes become the objects themselves.
PLAIN = """def f(@HEAD@):
    "culprit:enter"(@NUMBER@, @TAKEN@)
    try:
        culprit_result = "culprit:original"(@CALL@)
    except BaseException:
        "culprit:leave"(@NUMBER@, None, 1)
        raise
    "culprit:leave"(@NUMBER@, culprit_result, 0)
    return culprit_result
"""
GENERATOR = """def f(@HEAD@):
    return (yield from "culprit:segments"("culprit:original"(@CALL@), @NUMBER@, @TAKEN@))
"""
COROUTINE = """async def f(@HEAD@):
    return await "culprit:segments"("culprit:original"(@CALL@), @NUMBER@, @TAKEN@)
"""
ASYNCHRONOUS = """async def f(@HEAD@):
    culprit_inner = "culprit:turns"("culprit:original"(@CALL@), @NUMBER@, @TAKEN@)
    culprit_next = "asend", None
    try:
        while True:
            culprit_next = [await culprit_inner.turn(*culprit_next)]
            try:
                culprit_next = "asend", (yield culprit_next.pop())
            except BaseException as culprit_error:
                culprit_next = "athrow", culprit_error
    except StopAsyncIteration:
        return
"""
COMPILER = """def f(@HEAD@):
    "culprit:give_up"()
    return "culprit:original"(@CALL@)
"""

WITH_ARGUMENTS, WITH_KEYWORDS = 0x04, 0x08  # of co_flags: *args, **kwargs


def own_parameters(code):
    """The same parameters: who looks at the function sees what it saw, and Python 3.11 calls the original without a frame of C,
    so that it recurses as deep as before on the stack of the thread."""
    count, only = code.co_argcount, code.co_kwonlyargcount
    names, keywords = list(code.co_varnames[:count]), list(code.co_varnames[count:count + only])
    others = list(code.co_varnames[count + only:][:bool(code.co_flags & WITH_ARGUMENTS) + bool(code.co_flags & WITH_KEYWORDS)])
    if not all(name.isidentifier() for name in names + keywords + others):
        return {"@HEAD@": "*args, **kwargs", "@CALL@": "*args, **kwargs", "@TAKEN@": "args, kwargs"}
    rest = ["**" + name for name in others[-1:] if code.co_flags & WITH_KEYWORDS]
    more = ["*" + name for name in others[:1] if code.co_flags & WITH_ARGUMENTS]
    first = getattr(code, "co_posonlyargcount", 0)
    head = names[:first] + (["/"] if first else []) + names[first:] + (more or (["*"] if keywords else [])) + keywords + rest
    return {"@HEAD@": ", ".join(head),
            "@CALL@": ", ".join(names + more + [name + "=" + name for name in keywords] + rest),
            "@TAKEN@": "(" + "".join(name + ", " for name in names + more) + "), {" + ", ".join(['"' + name + '": ' + name for name in keywords] + rest) + "}"}


def kind_of(code):
    if code.co_flags & ASYNCHRONOUS_GENERATOR:
        return ASYNCHRONOUS
    return COROUTINE if code.co_flags & COROUTINE_FUNCTION else GENERATOR if code.co_flags & GENERATOR_FUNCTION else PLAIN


class Segments:
    """A generator or coroutine that tells when it has its thread and when it gives it away."""

    def __init__(self, inner, number, args, kwargs):
        self.inner, self.number, self.first, self.of_generator = inner, number, (args, kwargs), False

    def step(self, method, *values):
        if self.first:
            on_enter(self.number, *self.first)
            self.first = None
        else:
            on_enter(self.number, None, None)
        try:
            result = method(*values)
        except StopIteration as end:
            on_leave(self.number, end.value, 2 if self.of_generator else 0)
            raise
        except BaseException as error:
            on_leave(self.number, None, 0 if self.of_generator and type(error) is StopAsyncIteration else 1)
            raise
        on_leave(self.number, None, 2)
        return result

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        return self.step(self.inner.send, None)

    def send(self, value):
        return self.step(self.inner.send, value)

    def throw(self, *error):
        return self.step(self.inner.throw, *error)

    def close(self):
        return self.inner.close()


class Turns:
    """An asynchronous generator that tells the same, from one value to the next."""

    def __init__(self, inner, number, args, kwargs):
        self.inner, self.number, self.first = inner, number, (args, kwargs)

    def turn(self, method, *values):
        if self.first:  # an event loop closes the outer one, which closes this
            hooks = sys.get_asyncgen_hooks()
            sys.set_asyncgen_hooks(None, lambda inner: None)
        try:
            step = getattr(self.inner, method)(*values)
        finally:
            if self.first:
                sys.set_asyncgen_hooks(*hooks)
        segments = Segments(step, self.number, None, None)
        segments.first, segments.of_generator, self.first = self.first, True, None
        return segments


def filled_in(text, code, names):
    for name, value in {**names, **own_parameters(code)}.items():
        text = text.replace(name, value)
    return text


def compiled(source, code):
    """The code of the one function that the source makes."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = compile(source, code.co_filename, "exec", optimize=0)
    return next(c for c in made.co_consts if hasattr(c, "co_code"))


def in_place_of(code, made, meant, names=()):
    """What was compiled, under the name of the code that it stands for; the texts of `meant` are what they mean, code of those names is that."""
    def of(constant):
        if isinstance(constant, str):
            return meant.get(constant, constant)
        return meant[constant.co_name] if hasattr(constant, "co_code") and constant.co_name in names else constant

    more = {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}
    return made.replace(co_consts=tuple(map(of, made.co_consts)), co_flags=made.co_flags | code.co_flags & MAY_BE_AWAITED, co_name=code.co_name,
                        co_firstlineno=code.co_firstlineno, co_freevars=code.co_freevars, **more)


def callbacks():
    return {"culprit:enter": on_enter, "culprit:leave": on_leave, "culprit:segments": Segments, "culprit:turns": Turns, "culprit:give_up": give_up}


def exchange(function, asked, text, names):
    import types

    code = function.__code__
    original = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__ = function.__qualname__
    replacement = in_place_of(code, compiled(filled_in(text, code, names), code), {**callbacks(), "culprit:original": original})

    def undo():
        if function.__code__ is replacement:  # else somebody else has exchanged it since
            function.__code__ = code

    state["exchanged"].append((asked, undo, lambda: exchange(function, asked, text, names)))
    state["originals"].append((function, original))
    function.__code__ = replacement
    if state["compiler"] == "works":  # another thread has just begun with it
        undo()


def as_it_was(function):
    """The function that holds the code that the program wrote."""
    for other, original in reversed(state["originals"]):
        if other is function and function.__code__ is not original.__code__:
            return original
    return function


def as_written(code):
    """By the program; what was made of it is known by its identity."""
    return state["written"].get(id(code), (None, code))[1]


def frozen():
    import gc

    return getattr(gc, "get_freeze_count", int)()


MADE_BEFORE = "is not seen where a call makes it that runs already"


def is_running(code):
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code is code:
                return True
            frame = frame.f_back
    return False


def replacement_within(code, qualified, text, names):
    """Code that tells, and calls a function that it makes with the original code of what it finds around itself, as the original does."""
    if any(name.startswith("culprit_") or not name.isidentifier() for name in code.co_varnames + code.co_freevars):
        return None
    head, _, body = filled_in(text, code, names).replace('"culprit:original"', "culprit_original").partition("\n")
    around = "".join(" " + name + " = None\n" for name in code.co_freevars)
    lines = [head, '    "culprit:doc"', "    def culprit_original(): (" + "".join(name + ", " for name in code.co_freevars) + ")", *body.splitlines()]
    outer = compiled("def culprit_outer():\n" + around + "".join(" " + line + "\n" for line in lines), code)
    made = next(c for c in outer.co_consts if hasattr(c, "co_code"))
    if made.co_freevars != code.co_freevars:
        return None
    first = code.co_consts[0] if code.co_consts else None
    meant = {**callbacks(), "culprit:doc": first if isinstance(first, str) else None, "culprit_original": code,
             "culprit_outer.<locals>.f.<locals>.culprit_original": qualified}
    return in_place_of(code, made, meant, ("culprit_original",))


def now_within(outer, code):
    """What stands for the code now."""
    if as_written(outer) is code:
        return outer
    for constant in outer.co_consts:
        found = now_within(constant, code) if hasattr(constant, "co_code") else None
        if found is not None:
            return found
    return None


def with_other_code(outer, code, replacement, others):
    """The outer code with the replacement for what lies in it; `others` gets each pair of codes that differ."""
    if outer is code:
        made = replacement
    else:
        within = [with_other_code(c, code, replacement, others) if hasattr(c, "co_code") else c for c in outer.co_consts]
        if all(a is b for a, b in zip(within, outer.co_consts)):
            return outer
        made = outer.replace(co_consts=tuple(within))
    others.append((outer, made))
    return made


def exchange_within(function, asked, qualified, text, names):
    """In what the outer function makes from now on; give_pending() does so in what it has made."""
    outer, pairs = function.outer, []
    before = outer.__code__
    now = now_within(before, function.__code__)
    if now is None:
        return
    after = with_other_code(before, now, replacement_within(now, qualified, text, names), pairs)
    for old, new in pairs:
        state["written"][id(new)] = new, as_written(old)
    state["pending"].update((id(old), new) for old, new in pairs)
    state["kept"].extend(old for old, _ in pairs)
    if not is_running(before):
        state["makers"].append((asked, before))

    def undo():
        if outer.__code__ is after:
            outer.__code__ = before

    state["exchanged"].append((asked, undo, lambda: exchange_within(function, asked, qualified, text, names)))
    outer.__code__ = after


def those_with(codes):
    """Functions, and calls that rest (generators, coroutines); looking for them stops the program for as long as a part of a collection of garbage."""
    import gc
    import types

    found = gc.get_referrers(*codes) if codes else []
    return [f for f in found if type(f) is types.FunctionType], [f for f in found if type(f) in (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)]


def give_pending():
    """The functions that were made have the new code, too, all at once."""
    pending = state["pending"]
    if not pending:
        return
    import weakref

    functions, resting = those_with(state["kept"])
    for asked, code in state["makers"]:
        if any(code in (getattr(one, "gi_code", None), getattr(one, "cr_code", None), getattr(one, "ag_code", None)) for one in resting):
            say("unusable\0" + asked + "\0" + MADE_BEFORE)
    state["makers"] = []
    for function in functions:
        if state["compiler"] == "works":
            break  # another thread has just begun with it
        code = function.__code__
        while id(code) in pending:
            code = pending[id(code)]
        if code is not function.__code__:
            state["given"].append(weakref.ref(function))
            function.__code__ = code
    state["pending"], state["kept"] = {}, []
    if state["compiler"] == "works":
        give_back()


def give_back():
    """What was exchanged, as what exchanges it again."""
    done, given, written = state["exchanged"], state["given"], state["written"]
    state.update(exchanged=[], originals=[], given=[], pending={}, kept=[], makers=[])
    for _, undo, _ in reversed(done):
        undo()
    # What lies in the permanent generation of gc.freeze() is found by its reference alone.
    for function in [f for f in (reference() for reference in given) if f is not None] + those_with([code for code, _ in written.values()])[0]:
        if id(function.__code__) in written:
            function.__code__ = as_written(function.__code__)
    state["written"] = {}
    return [(asked, again) for asked, _, again in done]


# PyTorch's compiler looks into the code of functions: it cannot compile one that is exchanged, and what it has compiled no longer counts. So nothing is
# exchanged where it works, and all is given back before it begins.
COMPILED = "torch.compile works in this process; before Python 3.12 functions are not watched beside it"


def compiler():
    if "torch._dynamo" not in sys.modules:
        return "absent"
    package, module = sys.modules["torch._dynamo"], sys.modules.get("torch._dynamo.eval_frame")
    if getattr(getattr(package, "__spec__", None), "_initializing", False):
        return "comes"
    backends = getattr(module, "cached_backends", None)
    known = isinstance(backends, dict) and hasattr(getattr(getattr(module, "OptimizeContext", None), "__init__", None), "__code__")
    return "rests" if known and all(backend is None for backend in list(backends.values())) else "works"


def compiler_is_known():
    """Nothing is exchanged as long as it is imported."""
    before, now = state["compiler"], compiler()
    if before == "works":
        return True
    if now == "works":
        give_up()
        return True
    state["compiler"] = now
    if now == "comes":
        state["suspended"] += give_back()
    elif now != before:
        if now == "rests":
            exchange(sys.modules["torch._dynamo.eval_frame"].OptimizeContext.__init__, None, COMPILER, {})
        again, state["suspended"] = state["suspended"], []
        for _, exchange_again in again:
            exchange_again()
        give_pending()
        if compiler() == "works":
            give_up()
    return now != "comes"


def give_up():
    if state["compiler"] == "works":
        return
    state["compiler"] = "works"
    for asked, _ in state["suspended"] + give_back():
        if asked is not None:
            say("unusable\0" + asked + "\0" + COMPILED)
    state["suspended"] = []
