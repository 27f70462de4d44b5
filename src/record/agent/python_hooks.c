/* The half of the agent that knows Python: callbacks in C for the functions that are watched, and hooks.py, which finds
   them and puts the callbacks in place (sys.monitoring from 3.12, code objects exchanged before). Everything here but
   culprit_python_begin() and is_look_due() runs with Python's lock held. Python's own functions are found by name in
   the process; nothing of its structures is touched but the head of an object, whose type stands behind its count, and
   the size of a dictionary, which stands behind that. */
#include "agent.h"

typedef struct object {
  intptr_t count;
  struct object* type;
} Object;
typedef intptr_t Size;
typedef struct {
  Object head;
  Size size;
} Dictionary;
typedef Object* (*Method)(Object* self, Object* const* arguments, Size count);
struct method {
  const char* name;
  Method run;
  int flags;
  const char* doc;
};
enum {
  kFastCall = 0x80,
  kFileInput = 257,
  kMostFunctions = 512,
  kSlots = 2048,
  kMostPath = 6,
  kMostSum = 4096,
  kThreads = 256,
  kSessions = 1 << 16, /* as SESSIONS of hooks.py */
  kSettles = 10,       /* looks after a module came, which may not be complete before */
  kSometimes = 25
};

/* What of the process's Python is used. */
#define FUNCTIONS(X)                                                \
  X(int, Py_IsInitialized, (void))                                  \
  X(int, PyGILState_Ensure, (void))                                 \
  X(void, PyGILState_Release, (int))                                \
  X(Object*, PyDict_New, (void))                                    \
  X(int, PyDict_SetItemString, (Object*, const char*, Object*))     \
  X(Object*, PyDict_GetItemString, (Object*, const char*))          \
  X(int, PyDict_Next, (Object*, Size*, Object**, Object**))         \
  X(Object*, PyEval_GetBuiltins, (void))                            \
  X(Object*, PyImport_GetModuleDict, (void))                        \
  X(Object*, Py_CompileString, (const char*, const char*, int))     \
  X(Object*, PyEval_EvalCode, (Object*, Object*, Object*))          \
  X(Object*, PyObject_CallObject, (Object*, Object*))               \
  X(Object*, PyObject_GetAttr, (Object*, Object*))                  \
  X(Size, PyObject_Size, (Object*))                                 \
  X(Object*, PyCFunction_NewEx, (struct method*, Object*, Object*)) \
  X(Object*, PyUnicode_InternFromString, (const char*))             \
  X(Object*, PyUnicode_FromStringAndSize, (const char*, Size))      \
  X(const char*, PyUnicode_AsUTF8AndSize, (Object*, Size*))         \
  X(long long, PyLong_AsLongLong, (Object*))                        \
  X(double, PyFloat_AsDouble, (Object*))                            \
  X(Object*, PyTuple_GetItem, (Object*, Size))                      \
  X(Size, PyTuple_Size, (Object*))                                  \
  X(Object*, PyList_GetItem, (Object*, Size))                       \
  X(Size, PyList_Size, (Object*))                                   \
  X(Object*, PyErr_Occurred, (void))                                \
  X(void, PyErr_Clear, (void))                                      \
  X(void, PyErr_Fetch, (Object**, Object**, Object**))              \
  X(Object*, PyObject_Str, (Object*))                               \
  X(void*, PyThreadState_Get, (void))                               \
  X(uint64_t, PyThreadState_GetID, (void*))                         \
  X(void, Py_IncRef, (Object*))                                     \
  X(void, Py_DecRef, (Object*))
#define X(result, name, parameters) static result(*name) parameters = NULL;
FUNCTIONS(X)
#undef X
static Object* (*PyEval_GetFrame)(void) = NULL;            /* 3.12 */
static Object* (*PyFrame_GetVar)(Object*, Object*) = NULL; /* 3.12 */
static Object* none = NULL;
static Dictionary* modules = NULL; /* sys.modules, where its size is where it should be */
static Size modules_seen = 0;
static uint32_t looks = 0; /* since modules came */
static Object *list_type = NULL, *tuple_type = NULL, *dict_type = NULL, *long_type = NULL, *float_type = NULL;

extern const char culprit_hooks_text[];
__asm__(
    ".pushsection .rodata\n.global culprit_hooks_text\n.hidden culprit_hooks_text\nculprit_hooks_text:\n.incbin "
    "\"" CULPRIT_HOOKS "\"\n.incbin \"" CULPRIT_EXCHANGE "\"\n.byte 0\n.popsection\n");

enum kind { kValue = 0, kLength = 1, kSum = 2, kOnes = 3, kSeconds = 4 };
struct capture {
  uint8_t kind;
  uint8_t of_result; /* of what the function returns */
  uint8_t steps;
  uint8_t each;     /* of these, before those that are taken of each member of a list; steps: there is none */
  int16_t position; /* among the arguments, where they are handed over as a tuple */
  Object* name;
  Object* path[kMostPath];
  Object* fallback; /* its default, before 3.12 */
};
struct function {
  Object* code;
  uint8_t count;
  uint8_t looks_at_result;
  struct capture captures[CULPRIT_AGENT_ARGUMENTS];
};
static struct function functions[kMostFunctions];
static uint32_t function_count = 0;
static uint16_t by_code[kSlots]; /* number + 1 */
static struct {
  uint64_t id;
  int32_t tid;
} threads[kThreads];
static long long session = 0; /* recordings of this process so far */
static Object* hooks = NULL;  /* the names of hooks.py and exchange.py */
static volatile int watching = 0;

static int is_a(Object* object, Object* type) { return object->type == type; }

static uint32_t place_of(Object* code) { return (uint32_t)(((uintptr_t)code >> 4) * 2654435761u) & (kSlots - 1); }

static int find(Object* code) {
  for (uint32_t i = place_of(code), n = 0; n < kSlots && by_code[i]; i = (i + 1) & (kSlots - 1), ++n)
    if (functions[by_code[i] - 1].code == code) return by_code[i] - 1;
  return -1;
}

static int32_t thread(void) {
  const uint64_t id = PyThreadState_GetID(PyThreadState_Get());
  const uint64_t slot = id % kThreads;
  if (threads[slot].id != id || !threads[slot].tid) {
    threads[slot].id = id;
    threads[slot].tid = culprit_agent_thread();
  }
  return threads[slot].tid;
}

static int add_number(Object* object, int64_t* sum) {
  if (!object || !is_a(object, long_type)) return 0;
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return 0;
  }
  return !__builtin_add_overflow(*sum, (int64_t)value, sum);
}

/* The number, or with `ones` whether it is 1. */
static int add_one_of(Object* object, int ones, int64_t* sum) {
  if (!ones) return add_number(object, sum);
  int64_t number = 0;
  if (!add_number(object, &number)) return 0;
  *sum += number == 1;
  return 1;
}

/* What stands behind `from` attributes of an object, of which the reference is taken. */
static Object* attribute_of(const struct capture* capture, Object* object, uint8_t from, uint8_t to) {
  for (uint8_t i = from; object && i < to; ++i) {
    Object* next = PyObject_GetAttr(object, capture->path[i]);
    Py_DecRef(object);
    object = next;
  }
  return object;
}

/* The attributes may be the program's own code, which may change the list. */
static int add_member(const struct capture* capture, Object* member, int64_t* sum) {
  Py_IncRef(member);
  Object* number = attribute_of(capture, member, capture->each, capture->steps);
  const int known = number && add_one_of(number, capture->kind == kOnes, sum);
  if (number) Py_DecRef(number);
  return known;
}

static int sum_of(const struct capture* capture, Object* object, int64_t* sum) {
  const int ones = capture->kind == kOnes;
  if (is_a(object, dict_type) && capture->each == capture->steps) {
    Size at = 0;
    Object *key = NULL, *value = NULL;
    for (int n = 0; PyDict_Next(object, &at, &key, &value); ++n)
      if (n >= kMostSum || !add_one_of(value, ones, sum)) return 0;
    return 1;
  }
  const int list = is_a(object, list_type);
  if (!list && !is_a(object, tuple_type)) return 0;
  if ((list ? PyList_Size(object) : PyTuple_Size(object)) > kMostSum) return 0;
  for (Size i = 0; i < (list ? PyList_Size(object) : PyTuple_Size(object)); ++i)
    if (!add_member(capture, list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i), sum)) return 0;
  return 1;
}

/* Seconds as nanoseconds; only of an exact float, in which no code of the program can be. */
static int add_seconds(Object* object, int64_t* number) {
  if (!object || !is_a(object, float_type)) return 0;
  const double ns = PyFloat_AsDouble(object) * 1e9;
  if (!(ns > -9e18 && ns < 9e18)) return 0;
  *number = (int64_t)ns;
  return 1;
}

/* The number that a capture asks for. Takes the reference to `object`. */
static int number_of(const struct capture* capture, Object* object, int64_t* number) {
  if (object) object = attribute_of(capture, object, 0, capture->each);
  int known = 0;
  if (object) {
    *number = 0;
    if (capture->kind == kValue) {
      known = add_number(object, number);
    } else if (capture->kind == kSeconds) {
      known = add_seconds(object, number);
    } else if (capture->kind == kSum || capture->kind == kOnes) {
      known = sum_of(capture, object, number);
    } else {
      const Size size = PyObject_Size(object);
      known = size >= 0;
      *number = size;
    }
    Py_DecRef(object);
  }
  if (PyErr_Occurred()) PyErr_Clear();
  return known;
}

static Object* argument_of(const struct capture* capture, Object* tuple, Object* by_name) {
  if (!tuple) return PyFrame_GetVar(PyEval_GetFrame(), capture->name);
  Object* found = NULL;
  if (capture->position >= 0 && capture->position < PyTuple_Size(tuple))
    found = PyTuple_GetItem(tuple, capture->position);
  Size length = 0;
  const char* name = found ? NULL : PyUnicode_AsUTF8AndSize(capture->name, &length);
  if (!found && by_name && name) found = PyDict_GetItemString(by_name, name);
  if (!found) found = capture->fallback;
  if (found) Py_IncRef(found);
  return found;
}

/* Taking a number may run code of the program that calls a watched function: that is none of the program's calls.
   Threads in which it is so, by the global lock's leave; more at once than fit are told. */
enum { kMostTaking = 8 };
static uint32_t taking[kMostTaking];
static uint32_t* taking_of(uint32_t thread) {
  for (int i = 0; i < kMostTaking; ++i)
    if (taking[i] == thread) return &taking[i];
  return NULL;
}

static void begin(int number, Object* tuple, Object* by_name, int resumed) {
  struct function* f = &functions[number];
  int64_t values[CULPRIT_AGENT_ARGUMENTS];
  uint8_t missing = 0;
  const uint8_t count = resumed ? 0 : f->count;
  uint32_t* const place = count > 0 ? taking_of(0) : NULL;
  if (place) *place = (uint32_t)thread();
  for (uint8_t i = 0; i < count; ++i) {
    values[i] = 0;
    if (f->captures[i].of_result ||
        !number_of(&f->captures[i], argument_of(&f->captures[i], tuple, by_name), &values[i]))
      missing = (uint8_t)(missing | 1u << i);
  }
  if (place) *place = 0;
  culprit_agent_write(CULPRIT_AGENT_BEGIN, resumed ? CULPRIT_AGENT_RESUMED : 0, thread(), (uint32_t)number, values,
                      count, missing, NULL, 0);
}

static void end(int number, Object* result, uint8_t flags) {
  struct function* f = &functions[number];
  if (!f->looks_at_result || !result) {
    culprit_agent_write(CULPRIT_AGENT_END, flags, thread(), (uint32_t)number, NULL, 0, 0, NULL, 0);
    return;
  }
  int64_t values[CULPRIT_AGENT_ARGUMENTS];
  uint8_t missing = 0;
  uint32_t* const place = taking_of(0);
  if (place) *place = (uint32_t)thread();
  for (uint8_t i = 0; i < f->count; ++i) {
    values[i] = 0;
    if (f->captures[i].of_result) Py_IncRef(result);
    if (!f->captures[i].of_result || !number_of(&f->captures[i], result, &values[i]))
      missing = (uint8_t)(missing | 1u << i);
  }
  if (place) *place = 0;
  culprit_agent_write(CULPRIT_AGENT_END, flags, thread(), (uint32_t)number, values, f->count, missing, NULL, 0);
}

static Object* nothing(void) {
  Py_IncRef(none);
  return none;
}

/* Callbacks of sys.monitoring: (code, offset, ...). */
static Object* on_start(Object* self, Object* const* a, Size n) {
  (void)self;
  const int number = watching && n > 1 ? find(a[0]) : -1;
  if (number >= 0) begin(number, NULL, NULL, 0);
  return nothing();
}
static Object* on_resume(Object* self, Object* const* a, Size n) {
  (void)self;
  const int number = watching && n > 1 ? find(a[0]) : -1;
  if (number >= 0) begin(number, NULL, NULL, 1);
  return nothing();
}
static Object* on_return(Object* self, Object* const* a, Size n) {
  (void)self;
  const int number = watching && n > 2 ? find(a[0]) : -1;
  if (number >= 0) end(number, a[2], 0);
  return nothing();
}
static Object* on_yield(Object* self, Object* const* a, Size n) {
  (void)self;
  const int number = watching && n > 2 ? find(a[0]) : -1;
  if (number >= 0) end(number, NULL, CULPRIT_AGENT_AWAITS);
  return nothing();
}
static Object* on_unwind(Object* self, Object* const* a, Size n) {
  (void)self;
  const int number = watching && n > 1 ? find(a[0]) : -1;
  if (number >= 0) end(number, NULL, CULPRIT_AGENT_RAISED);
  return nothing();
}

/* Before 3.12: (number, arguments, keywords), (number, result), (number, flags). */
static int number_in(Object* object) {
  const long long value = PyLong_AsLongLong(object);
  const long long number = value % kSessions; /* a call that is older than the recording has another session */
  return watching && value / kSessions == session && number < (long long)function_count ? (int)number : -1;
}
static Object* on_enter(Object* self, Object* const* a, Size n) {
  (void)self;
  const int number = n == 3 && !taking_of((uint32_t)thread()) ? number_in(a[0]) : -1;
  if (number >= 0)
    begin(number, is_a(a[1], tuple_type) ? a[1] : NULL, is_a(a[2], dict_type) ? a[2] : NULL, !is_a(a[1], tuple_type));
  return nothing();
}
static Object* on_leave(Object* self, Object* const* a, Size n) {
  (void)self;
  const int number = n == 3 && !taking_of((uint32_t)thread()) ? number_in(a[0]) : -1;
  const long long flags = number >= 0 ? PyLong_AsLongLong(a[2]) : 0;
  if (number >= 0) end(number, flags ? NULL : a[1], (uint8_t)flags);
  return nothing();
}

/* Of gc.callbacks: ("start" or "stop", {"generation": ..., "collected": ...}). */
static Object* on_gc(Object* self, Object* const* a, Size n) {
  (void)self;
  if (!watching || n != 2 || !is_a(a[1], dict_type)) return nothing();
  Size length = 0;
  const char* phase = PyUnicode_AsUTF8AndSize(a[0], &length);
  int64_t generation = 0;
  int64_t collected = 0;
  add_number(PyDict_GetItemString(a[1], "generation"), &generation);
  if (phase && length == 5) {
    culprit_agent_write(CULPRIT_AGENT_GC_BEGIN, 0, thread(), (uint32_t)generation, NULL, 0, 0, NULL, 0);
  } else if (phase) {
    add_number(PyDict_GetItemString(a[1], "collected"), &collected);
    culprit_agent_write(CULPRIT_AGENT_GC_END, 0, thread(), (uint32_t)generation, &collected, 1, 0, NULL, 0);
  }
  if (PyErr_Occurred()) PyErr_Clear();
  return nothing();
}

static void say(const char* text, size_t bytes) {
  culprit_agent_write(CULPRIT_AGENT_MESSAGE, 0, culprit_agent_thread(), 0, NULL, 0, 0, text, bytes);
}

static Object* on_say(Object* self, Object* const* a, Size n) {
  (void)self;
  Size length = 0;
  const char* text = n == 1 ? PyUnicode_AsUTF8AndSize(a[0], &length) : NULL;
  if (text) say(text, (size_t)length);
  if (PyErr_Occurred()) PyErr_Clear();
  return nothing();
}

/* watch(code, description, captures) -> number; a capture is (kind, of_result, position, name, path, fallback). The
 * code is kept. */
static Object* on_watch(Object* self, Object* const* a, Size n) {
  (void)self;
  if (n != 3 || function_count >= kMostFunctions || find(a[0]) >= 0) return nothing();
  struct function* f = &functions[function_count];
  memset(f, 0, sizeof *f);
  const Size count = PyTuple_Size(a[2]);
  for (Size i = 0; i < count && i < CULPRIT_AGENT_ARGUMENTS; ++i) {
    Object* given = PyTuple_GetItem(a[2], i);
    struct capture* c = &f->captures[f->count];
    c->kind = (uint8_t)PyLong_AsLongLong(PyTuple_GetItem(given, 0));
    c->of_result = (uint8_t)PyLong_AsLongLong(PyTuple_GetItem(given, 1));
    c->position = (int16_t)PyLong_AsLongLong(PyTuple_GetItem(given, 2));
    c->name = PyTuple_GetItem(given, 3);
    Object* path = PyTuple_GetItem(given, 4);
    const Size steps = PyTuple_Size(path);
    int of_each = 0;
    for (Size k = 0; k < steps && c->steps < kMostPath; ++k) {
      Size letters = 0;
      const char* step = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(path, k), &letters);
      if (step && letters == 2 && step[0] == '[') {
        of_each = 1;
        c->each = c->steps;
        continue;
      }
      Py_IncRef(c->path[c->steps++] = PyTuple_GetItem(path, k));
    }
    if (!of_each) c->each = c->steps;
    c->fallback = PyTuple_GetItem(given, 5);
    if (c->fallback == none) c->fallback = NULL;
    if (c->fallback) Py_IncRef(c->fallback);
    Py_IncRef(c->name);
    f->looks_at_result |= c->of_result;
    ++f->count;
  }
  Py_IncRef(f->code = a[0]);
  uint32_t slot = place_of(a[0]);
  while (by_code[slot]) slot = (slot + 1) & (kSlots - 1);
  by_code[slot] = (uint16_t)(function_count + 1);
  Size length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(a[1], &length);
  culprit_agent_write(CULPRIT_AGENT_FUNCTION, 0, culprit_agent_thread(), function_count, NULL, 0, 0, text,
                      text ? (size_t)length : 0);
  ++function_count;
  if (PyErr_Occurred()) PyErr_Clear();
  return nothing();
}

static Object* on_new_session(Object* self, Object* const* a, Size n) {
  (void)self;
  if (n == 1) session = PyLong_AsLongLong(a[0]);
  return nothing();
}

static struct method methods[] = {
    {"on_start", on_start, kFastCall, NULL},
    {"on_resume", on_resume, kFastCall, NULL},
    {"on_return", on_return, kFastCall, NULL},
    {"on_yield", on_yield, kFastCall, NULL},
    {"on_unwind", on_unwind, kFastCall, NULL},
    {"on_enter", on_enter, kFastCall, NULL},
    {"on_leave", on_leave, kFastCall, NULL},
    {"on_gc", on_gc, kFastCall, NULL},
    {"say", on_say, kFastCall, NULL},
    {"watch", on_watch, kFastCall, NULL},
    {"new_session", on_new_session, kFastCall, NULL},
};

static void say_error(void) {
  Object *type = NULL, *value = NULL, *trace = NULL;
  PyErr_Fetch(&type, &value, &trace);
  Object* text = value ? PyObject_Str(value) : NULL;
  Size length = 0;
  const char* utf8 = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
  if (utf8) say(utf8, (size_t)length);
  Object* all[] = {type, value, trace, text};
  for (int i = 0; i < 4; ++i)
    if (all[i]) Py_DecRef(all[i]);
  PyErr_Clear();
}

/* A function of hooks.py. True when it raised nothing. */
static int run(const char* name) {
  Object* function = hooks ? PyDict_GetItemString(hooks, name) : NULL;
  Object* result = function ? PyObject_CallObject(function, NULL) : NULL;
  if (result) {
    Py_DecRef(result);
    return 1;
  }
  if (PyErr_Occurred()) say_error();
  return 0;
}

static int find_python(void) {
  if (!culprit_agent_symbol("Py_IsInitialized")) {
    say("there is no Python in this process", 34);
    return 0;
  }
#define X(result, name, parameters)                                          \
  name = (result(*) parameters)culprit_agent_symbol(#name);                  \
  if (!name) {                                                               \
    say("Python 3.9 or newer is needed; this one lacks " #name,              \
        sizeof("Python 3.9 or newer is needed; this one lacks " #name) - 1); \
    return 0;                                                                \
  }
  FUNCTIONS(X)
#undef X
  PyEval_GetFrame = (Object * (*)(void)) culprit_agent_symbol("PyEval_GetFrame");
  PyFrame_GetVar = (Object * (*)(Object*, Object*)) culprit_agent_symbol("PyFrame_GetVar");
  none = culprit_agent_symbol("_Py_NoneStruct");
  list_type = culprit_agent_symbol("PyList_Type");
  tuple_type = culprit_agent_symbol("PyTuple_Type");
  dict_type = culprit_agent_symbol("PyDict_Type");
  long_type = culprit_agent_symbol("PyLong_Type");
  float_type = culprit_agent_symbol("PyFloat_Type");
  if (Py_IsInitialized()) return none && list_type && tuple_type && dict_type && long_type && float_type;
  say("Python has not begun yet", 24);
  return 0;
}

static void forget_functions(void) {
  for (uint32_t i = 0; i < function_count; ++i) {
    struct function* f = &functions[i];
    for (uint8_t k = 0; k < f->count; ++k) {
      Py_DecRef(f->captures[k].name);
      for (uint8_t s = 0; s < f->captures[k].steps; ++s) Py_DecRef(f->captures[k].path[s]);
      if (f->captures[k].fallback) Py_DecRef(f->captures[k].fallback);
    }
    Py_DecRef(f->code);
  }
  function_count = 0;
  memset(by_code, 0, sizeof by_code);
}

static int begin_with_lock(void) {
  if (function_count) { /* a child of a process that was watched */
    run("end");
    forget_functions();
  }
  if (!hooks) {
    hooks = PyDict_New();
    if (!hooks || PyDict_SetItemString(hooks, "__builtins__", PyEval_GetBuiltins()) != 0) return 0;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; ++i) {
      Object* method = PyCFunction_NewEx(&methods[i], NULL, NULL);
      if (!method || PyDict_SetItemString(hooks, methods[i].name, method) != 0) return 0;
      Py_DecRef(method);
    }
    Object* code = Py_CompileString(culprit_hooks_text, "<culprit>", kFileInput);
    Object* result = code ? PyEval_EvalCode(code, hooks, hooks) : NULL;
    if (code) Py_DecRef(code);
    if (!result) return 0;
    Py_DecRef(result);
  }
  const struct culprit_agent_header* h = culprit_agent_shared;
  Size bytes = (Size)h->config_bytes;
  if (bytes > CULPRIT_AGENT_CONFIG_BYTES) bytes = CULPRIT_AGENT_CONFIG_BYTES;
  Object* config = PyUnicode_FromStringAndSize((const char*)h + CULPRIT_AGENT_HEADER_BYTES, bytes);
  if (!config || PyDict_SetItemString(hooks, "config", config) != 0) return 0;
  Py_DecRef(config);
  memset(threads, 0, sizeof threads);
  Dictionary* imported = (Dictionary*)PyImport_GetModuleDict();
  if (modules) Py_DecRef(&modules->head);
  modules = imported && imported->size == PyObject_Size(&imported->head) ? imported : NULL;
  if (modules) Py_IncRef(&modules->head);
  modules_seen = modules ? modules->size : -1; /* hooks.py looks at these now */
  looks = kSettles;
  watching = 1;
  return run("begin");
}

int culprit_python_begin(void) {
  if (!find_python()) {
    culprit_agent_shared = NULL;
    return 0;
  }
  const int state = PyGILState_Ensure();
  const int fine = begin_with_lock();
  if (!fine) {
    if (PyErr_Occurred()) say_error();
    watching = 0;
    run("end");
    culprit_agent_shared = NULL;
  }
  PyGILState_Release(state);
  return fine;
}

void culprit_python_in_child(void) { watching = 0; }

/* Asking for Python's lock costs the program more than the look: how many modules there are is read without. */
static int is_look_due(void) {
  const Size size = modules ? __atomic_load_n(&modules->size, __ATOMIC_RELAXED) : -1;
  if (!modules || size != modules_seen) looks = 0;
  modules_seen = size;
  ++looks;
  return looks <= kSettles || looks % kSometimes == 0;
}

void culprit_python_look(void) {
  if (!Py_IsInitialized() || !is_look_due()) return;
  const int state = PyGILState_Ensure();
  run("look");
  PyGILState_Release(state);
}

void culprit_python_end(void) {
  if (!Py_IsInitialized()) {
    culprit_agent_shared = NULL;
    return;
  }
  const int state = PyGILState_Ensure();
  watching = 0;
  run("end");
  forget_functions();
  if (modules) Py_DecRef(&modules->head);
  modules = NULL;
  culprit_agent_shared = NULL;
  PyGILState_Release(state);
}
