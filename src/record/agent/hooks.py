# Runs inside the recorded process, among names of its own: finds the functions that are asked for and puts the agent's callbacks
# (in C) in their place. begin(), look() now and then, end(); `config` says what is wanted. From 3.12 on sys.monitoring tells of
# chosen code objects alone; before, the code of a function is exchanged for one that tells and calls the original.
import sys

CHOICES = (4, 3, 5, 2)  # numbers of tools, the profiler's last
MOST = 512  # functions that are watched
MONITORING = getattr(sys, "monitoring", None)
SESSIONS = 1 << 16  # what a wrapper calls itself by: session * SESSIONS + number of the function
state = {"session": 0, "forks": False, "tool": None, "wanted": [], "missing": [], "exchanged": [], "originals": [], "suspended": [], "codes": [], "known": [], "hinted": [], "compiler": "absent", "gc": False}


def parse(text):
    wanted = []
    for line in text.splitlines():
        fields = line.split("\x1f")
        captures = []
        for field in fields[3:]:
            kind, _, path = field.partition(":")
            name, *steps = path.replace("[]", ".[]").split(".")
            captures.append((int(kind), name, tuple(sys.intern(step) for step in steps)))
        wanted.append((fields[0], fields[1], fields[2], captures))
    return wanted


def begin():
    if MONITORING is None and sys.version_info >= (3, 12):
        raise RuntimeError("this interpreter has no sys.monitoring")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise RuntimeError("this interpreter runs without its global lock; that is not supported")
    state["session"] += 1
    new_session(state["session"])
    restore_in_children()
    options, _, rest = config.partition("\n")
    state["wanted"] = parse(rest)
    if state["wanted"] and MONITORING is not None:
        take_tool()
    state["missing"] = list(state["wanted"])
    if "gc" in options.split():
        import gc

        gc.callbacks.append(on_gc)
        state["gc"] = True
    look()


def restore_in_children():
    """A child that is forked meanwhile is watched by nobody."""
    import os

    if not state["forks"] and hasattr(os, "register_at_fork"):
        state["forks"] = True
        os.register_at_fork(after_in_child=end)


def take_tool():
    names = []
    for number in CHOICES:
        try:
            MONITORING.use_tool_id(number, "culprit")
        except ValueError:
            names.append(str(MONITORING.get_tool(number)))
            continue
        state["tool"] = number
        events = MONITORING.events
        for event, callback in ((events.PY_START, on_start), (events.PY_RESUME, on_resume), (events.PY_THROW, on_resume),
                                (events.PY_RETURN, on_return), (events.PY_YIELD, on_yield), (events.PY_UNWIND, on_unwind)):
            MONITORING.register_callback(number, event, callback)
        MONITORING.set_events(number, events.PY_UNWIND | events.PY_THROW)  # these are of all code or of none
        return
    raise RuntimeError("others use sys.monitoring: " + ", ".join(names))


def look():
    if MONITORING is None and state["wanted"] and not compiler_is_known():
        return
    missing = []
    for wanted in state["missing"]:
        if not find(wanted):
            missing.append(wanted)
            hint(wanted)
    state["missing"] = missing


def modules_of(name):
    module = sys.modules.get(name)
    if module is not None:
        yield module
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if main is not None and main is not module and (name == "__main__" or (spec is not None and spec.name == name)):
        yield main


def find(wanted):
    asked, module_name, qualified, captures = wanted
    found = False
    for module in modules_of(module_name):
        for function in functions_in(module, qualified.split("."), asked):
            code = getattr(function, "__code__", None)
            if code is None:
                say("unusable\0" + asked + "\0is no Python function")
                found = True
                continue
            attach(asked, qualified, function, code, captures)
            found = True
    return found


def hint(wanted):
    """Says once what to ask for where a function makes what was asked for."""
    asked, module_name, qualified, _ = wanted
    for module in modules_of(module_name):
        outer, inner = maker_of(module, qualified.split("."))
        if outer is not None and asked not in state["hinted"]:
            state["hinted"].append(asked)
            say("unusable\0" + asked + "\0is made by " + outer + ": ask for " + outer + ".<locals>." + inner)


def maker_of(owner, names):
    """The names of a function and of one that it makes, where the names go from the one to the other without <locals>."""
    for i, name in enumerate(names):
        member = member_of(owner, name)
        if member is None:
            outer = None if i + 1 < len(names) or isinstance(owner, (type, type(sys))) else as_it_was(innermost(owner))
            makes = type(outer).__name__ == "function" and codes_within(outer.__code__, [name])
            return (".".join(names[:i]), name) if makes else (None, None)
        owner = member
    return None, None


def member_of(owner, name):
    places = owner.__mro__ if isinstance(owner, type) else (owner,)
    for place in places:
        names = getattr(place, "__dict__", None)
        if names is not None and name in names:
            return names[name]
    return None


def innermost(member):
    """The function behind what decorators made of it."""
    for _ in range(32):
        kind = type(member)
        if kind in (staticmethod, classmethod):
            member = member.__func__
        elif kind is property and member.fget is not None:
            member = member.fget
        elif kind.__name__ == "singledispatchmethod" and hasattr(member, "func"):
            member = member.func
        elif getattr(member, "__wrapped__", None) is not None:
            member = member.__wrapped__
        elif kind.__name__ == "partial" and hasattr(member, "func"):
            member = member.func
        elif kind.__name__ == "method":
            member = member.__func__
        else:
            break
    return member


def functions_in(owner, names, asked):
    for i, name in enumerate(names):
        if name == "<locals>":
            outer = as_it_was(innermost(owner))
            return [Within(outer, code) for code in codes_within(getattr(outer, "__code__", None), [n for n in names[i + 1:] if n != "<locals>"])]
        owner = member_of(owner, name)
        if owner is None:
            return []
    function = innermost(owner)
    if type(owner).__name__ == "partial" and hasattr(owner, "func"):
        say("unusable\0" + asked + "\0is functools.partial of " + str(getattr(function, "__qualname__", "")) + ": all calls of that are counted")
    return [function, *(f for f in registered(owner) if f is not function)]


def registered(member):
    """What a generic function calls by the type of its first argument."""
    if type(member).__name__ == "singledispatchmethod":
        member = getattr(member, "dispatcher", None)
    names = getattr(member, "__dict__", None)
    registry = names.get("registry") if isinstance(names, dict) and "dispatch" in names else None
    return list({id(f): f for f in map(innermost, registry.values())}.values()) if hasattr(registry, "values") else []


class Within:
    """What another function makes, as often as it is called: all that it made share the code."""

    def __init__(self, outer, code):
        self.outer, self.__code__ = outer, code


def codes_within(code, names):
    """Each of that name."""
    codes = [code] if code is not None else []
    for name in names:
        codes = [c for outer in codes for c in outer.co_consts if hasattr(c, "co_code") and c.co_name == name]
    return codes


def names_given(code):
    """Those of its arguments, and of what lies around it: before 3.12 only arguments are handed over."""
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & WITH_ARGUMENTS) + bool(code.co_flags & WITH_KEYWORDS)
    return code.co_varnames[:count] + (code.co_freevars if MONITORING is not None else ())


def captures_of(function, code, captures):
    """Where the arguments are, and what they are when they are not given."""
    positions = {name: i for i, name in enumerate(code.co_varnames[: code.co_argcount])}
    defaults = {}
    given = getattr(function, "__defaults__", None) or ()
    for name, value in zip(reversed(code.co_varnames[: code.co_argcount]), reversed(given)):
        defaults[name] = value
    defaults.update(getattr(function, "__kwdefaults__", None) or {})
    return tuple((kind, int(name == "return"), positions.get(name, -1), sys.intern(name), path, defaults.get(name))
                 for kind, name, path in captures)


def known_as(function, code):
    """As what it is watched already, with which numbers, and whether it is the same function."""
    for asked, other, its_code, captures in state["known"]:
        if other is function or (its_code is code and (MONITORING is not None or type(function) is Within)):
            return asked, captures, other is function or type(function) is Within
    return None


def attach(asked, qualified, function, code, captures):
    known = known_as(function, code)
    if known is not None:
        other, numbers, same = known
        if not same:
            say("unusable\0" + asked + "\0shares its code with " + other + ", which is watched: its calls are counted as calls of that")
        elif captures and captures != numbers:
            say("unusable\0" + asked + "\0is watched as " + other + " already: name all that is wanted of it in one line")
        else:
            say("found\0" + asked)
        return
    if len(state["codes"]) >= MOST:
        say("unusable\0" + asked + "\0comes behind " + str(MOST) + " others, which are all that are watched in a process")
        return
    state["known"].append((asked, function, code, captures))
    lacking = [name for _, name, _ in captures if name != "return" and name not in names_given(code)
               and (name in code.co_freevars or not code.co_flags & WITH_KEYWORDS)]
    if lacking:
        say("unusable\0" + asked + "\0has no argument " + ", ".join(dict.fromkeys(lacking)) + ": its numbers are missing")
    describe = "\0".join((qualified, code.co_filename, str(code.co_firstlineno), asked))
    number = len(state["codes"])
    if MONITORING is not None:
        state["codes"].append(code)
        watch(code, describe, captures_of(function, code, captures))
        events = MONITORING.events
        MONITORING.set_local_events(state["tool"], code, events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD)
        return
    if state["compiler"] == "works":
        say("unusable\0" + asked + "\0" + COMPILED)
        return
    names = {"@NUMBER@": str(state["session"] * SESSIONS + number)}
    if type(function) is Within:
        replacement = replacement_within(code, qualified, kind_of(code), names)
        if replacement is None:
            say("unusable\0" + asked + "\0has names that its place cannot be taken with")
            return
        import gc

        if getattr(gc, "get_freeze_count", int)():
            say("unusable\0" + asked + "\0is seen where it is made from now on: what was made before gc.freeze() is not found")
    state["codes"].append(code)
    watch(code if type(function) is Within else function, describe, captures_of(function, code, captures))
    if type(function) is Within:
        exchange_within(function, replacement, asked)
    else:
        exchange(function, asked, kind_of(code), names)


# Before 3.12. What is exchanged is the code of the function, so that whoever holds the function calls the new one.

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
    try:
        culprit_result = await culprit_inner.turn("asend", None)
        while True:
            try:
                culprit_result = yield culprit_result
            except GeneratorExit:
                await culprit_inner.turn("aclose")
                raise
            except BaseException as culprit_error:
                culprit_result = await culprit_inner.turn("athrow", culprit_error)
            else:
                culprit_result = await culprit_inner.turn("asend", culprit_result)
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
        segments = Segments(getattr(self.inner, method)(*values), self.number, None, None)
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
        made = compile(source, code.co_filename, "exec")
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


def exchanged(asked, undo, again):
    """Notes what was done. What cannot be undone since somebody else has exchanged it meanwhile stays."""
    state["exchanged"].append((asked, undo, again))
    if state["compiler"] == "works":  # another thread has just begun with it
        undo()


def exchange(function, asked, text, names):
    import types

    code = function.__code__
    original = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__ = function.__qualname__
    replacement = in_place_of(code, compiled(filled_in(text, code, names), code), {**callbacks(), "culprit:original": original})

    def undo():
        if function.__code__ is replacement:
            function.__code__ = code

    function.__code__ = replacement
    state["originals"].append((function, original))
    exchanged(asked, undo, lambda: exchange(function, asked, text, names))


def as_it_was(function):
    """The function that holds the code that the program wrote."""
    for other, original in reversed(state["originals"]):
        if other is function and function.__code__ is not original.__code__:
            return original
    return function


def replacement_within(code, qualified, text, names):
    """Code that tells, and calls a function that it makes with the original code of what it finds around itself, as the original does."""
    if any(name.startswith("culprit_") or not name.isidentifier() for name in code.co_varnames + code.co_freevars):
        return None
    head, _, body = filled_in(text, code, names).replace('"culprit:original"', "culprit_original").partition("\n")
    around = "".join(" " + name + " = None\n" for name in code.co_freevars)
    lines = [head, "    def culprit_original(): (" + "".join(name + ", " for name in code.co_freevars) + ")", *body.splitlines()]
    outer = compiled("def culprit_outer():\n" + around + "".join(" " + line + "\n" for line in lines), code)
    made = next(c for c in outer.co_consts if hasattr(c, "co_code"))
    if made.co_freevars != code.co_freevars:
        return None
    return in_place_of(code, made, {**callbacks(), "culprit_original": code, "culprit_outer.<locals>.f.<locals>.culprit_original": qualified}, ("culprit_original",))


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


def give_code(pairs):
    """Whatever function has one of the codes gets its other."""
    import gc
    import types

    for function in gc.get_referrers(*(code for code, _ in pairs)):
        if type(function) is types.FunctionType:
            for code, other in pairs:
                if function.__code__ is code:
                    function.__code__ = other
                    break


def exchange_within(function, replacement, asked):
    """In what the outer function makes from now on, and in what it has made. Looking for that takes as long as a collection of garbage."""
    outer, pairs = function.outer, []
    before = outer.__code__
    after = with_other_code(before, function.__code__, replacement, pairs)

    def undo():
        if outer.__code__ is after:
            outer.__code__ = before
        give_code([(new, old) for old, new in pairs])

    outer.__code__ = after
    give_code(pairs)
    exchanged(asked, undo, lambda: exchange_within(function, replacement, asked))


def give_back():
    """What was exchanged, as what exchanges it again."""
    done = state["exchanged"]
    state["exchanged"], state["originals"] = [], []
    for _, undo, _ in reversed(done):
        undo()
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


def end():
    for asked, module, _, _ in state["missing"]:
        if next(modules_of(module), None) is not None:
            say("absent\0" + asked)
    if state["tool"] is not None:
        number, events = state["tool"], MONITORING.events
        for code in state["codes"]:
            MONITORING.set_local_events(number, code, 0)
        MONITORING.set_events(number, 0)
        for event in (events.PY_START, events.PY_RESUME, events.PY_THROW, events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND):
            MONITORING.register_callback(number, event, None)
        MONITORING.free_tool_id(number)
        state["tool"] = None
    give_back()
    if state["gc"]:
        import gc

        if on_gc in gc.callbacks:
            gc.callbacks.remove(on_gc)
    state.update(wanted=[], missing=[], exchanged=[], originals=[], suspended=[], codes=[], known=[], hinted=[], compiler="absent", gc=False)
