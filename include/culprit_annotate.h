/* Marks the steps of a program for `culprit record`. C99 and C++; no library, nothing to link, nothing to start.

     CULPRIT_STEP_BEGIN("step[DECODE bs=4 toks=4]");   a string, read only while somebody records (240 bytes of it)
     ...                                               the marks of one thread nest
     CULPRIT_STEP_END();
     CULPRIT_MARK("reloaded");                         a moment

   While nobody records, each is a load and a branch. The recorder finds the places by notes in the ELF file (USDT
   probes of the provider "culprit") and puts its own instruction there; that works in programs that run already.
   On other systems than Linux on x86-64 and arm64 the marks are nothing. */
#ifndef CULPRIT_ANNOTATE_H_
#define CULPRIT_ANNOTATE_H_

#if defined(__linux__) && defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))

#ifdef __cplusplus
extern "C" {
#endif
/* Counted up by the kernel while somebody records; one of each kind per executable or library. */
#define CULPRIT_COUNT_ __attribute__((weak, visibility("hidden"), section(".probes")))
CULPRIT_COUNT_ volatile unsigned short culprit_semaphore_step_begin = 0;
CULPRIT_COUNT_ volatile unsigned short culprit_semaphore_step_end = 0;
CULPRIT_COUNT_ volatile unsigned short culprit_semaphore_mark = 0;
#ifdef __cplusplus
}
#endif

/* A nop, and a note that says where it is and which register holds the name. */
#define CULPRIT_PLACE_(kind, argument)                                                                   \
  "990: nop\n .pushsection .note.stapsdt,\"?\",\"note\"\n .balign 4\n .4byte 992f-991f, 994f-993f, 3\n"  \
  "991: .asciz \"stapsdt\"\n 992: .balign 4\n 993: .8byte 990b, _.stapsdt.base, culprit_semaphore_" kind \
  "\n"                                                                                                   \
  " .asciz \"culprit\"\n .asciz \"" kind "\"\n .asciz \"" argument                                       \
  "\"\n 994: .balign 4\n .popsection\n"                                                                  \
  " .ifndef _.stapsdt.base\n .pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"      \
  " .weak _.stapsdt.base\n .hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n .size _.stapsdt.base, 1\n" \
  " .popsection\n .endif\n"
#define CULPRIT_NAMED_(kind, name)                                                           \
  do {                                                                                       \
    if (__builtin_expect(culprit_semaphore_##kind != 0, 0)) {                                \
      const char* const culprit_name_ = (name);                                              \
      __asm__ __volatile__(CULPRIT_PLACE_(#kind, "8@%0") : : "r"(culprit_name_) : "memory"); \
    }                                                                                        \
  } while (0)

#define CULPRIT_STEP_BEGIN(name) CULPRIT_NAMED_(step_begin, name)
#define CULPRIT_STEP_END()                                                 \
  do {                                                                     \
    if (__builtin_expect(culprit_semaphore_step_end != 0, 0))              \
      __asm__ __volatile__(CULPRIT_PLACE_("step_end", "") : : : "memory"); \
  } while (0)
#define CULPRIT_MARK(name) CULPRIT_NAMED_(mark, name)

#else
#define CULPRIT_STEP_BEGIN(name) ((void)sizeof(name))
#define CULPRIT_STEP_END() ((void)0)
#define CULPRIT_MARK(name) ((void)sizeof(name))
#endif
#endif
