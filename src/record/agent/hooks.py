# Runs inside the recorded process, among names of its own: finds the functions that are asked for and puts the agent's callbacks
# (in C) in their place. begin(), look() now and then, end(); `config` says what is wanted. From 3.12 on sys.monitoring tells of
# chosen code objects alone; before, the code of a function is exchanged for one that tells and calls the original.
import sys

CHOICES = (4, 3, 5, 2)  # numbers of tools, the profiler's last
MOST = 512  # functions that are watched
MONITORING = getattr(sys, "monitoring", None)
SESSIONS = 1 << 16  # what a wrapper calls itself by: session * SESSIONS + number of the function
state = {"session": 0, "forks": False, "tool": None, "wanted": [], "missing": [], "exchanged": [], "originals": [], "written": {}, "pending": {}, "kept": [], "given": [], "makers": [], "suspended": [], "codes": [], "known": [], "hinted": [], "compiler": "absent", "gc": False}


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
    give_pending()


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
    codes = [as_written(code)] if code is not None else []
    for name in names:
        codes = [as_written(c) for outer in codes for c in outer.co_consts if hasattr(c, "co_code") and c.co_name == name]
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
        if replacement_within(code, qualified, kind_of(code), names) is None:
            say("unusable\0" + asked + "\0has names that its place cannot be taken with")
            return
        if frozen():
            say("unusable\0" + asked + "\0is seen where it is made from now on: what was made before gc.freeze() is not found")
        elif is_running(function.outer.__code__):
            say("unusable\0" + asked + "\0" + MADE_BEFORE)
    state["codes"].append(code)
    watch(code if type(function) is Within else function, describe, captures_of(function, code, captures))
    if type(function) is Within:
        exchange_within(function, asked, qualified, kind_of(code), names)
    else:
        exchange(function, asked, kind_of(code), names)


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
    state.update(wanted=[], missing=[], exchanged=[], originals=[], written={}, pending={}, kept=[], given=[], makers=[], suspended=[], codes=[], known=[], hinted=[], compiler="absent", gc=False)
