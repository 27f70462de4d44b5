// The C functions that engine.py calls.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <vector>

#include "kernels.h"
#include "model.h"
#include "ranges.h"

#define TINYSERVE_API extern "C" __attribute__((visibility("default")))

using tinyserve::Model;

/// A model, or null with the reason in `why`.
TINYSERVE_API Model* tinyserve_create(int layers, int width, int slots, int context, int threads, std::uint64_t seed,
                                      double extra, char* why, int why_size) {
  tinyserve::Shape shape;
  shape.layers = layers;
  shape.width = width;
  shape.slots = slots;
  shape.context = context;
  shape.threads = threads;
  shape.seed = seed;
  shape.extra = extra;
  std::string refusal = Model::refusal(shape);
  if (refusal.empty()) try {
      return new Model(shape);
    } catch (const std::exception& e) {
      refusal = e.what();
    }
  std::snprintf(why, static_cast<std::size_t>(why_size), "%s", refusal.c_str());
  return nullptr;
}

TINYSERVE_API void tinyserve_destroy(Model* model) { delete model; }

TINYSERVE_API std::uint64_t tinyserve_weights(const Model* model) { return model->weights(); }

TINYSERVE_API const char* tinyserve_instructions() { return tinyserve::kernels().name; }

/// `tokens` holds the pieces behind each other, `lengths[i]` tokens for `slots[i]`. 0, or -1 for a wrong request.
TINYSERVE_API int tinyserve_forward(Model* model, int pieces, const std::int32_t* slots, const std::int32_t* lengths,
                                    const std::int32_t* tokens, std::int32_t* next) {
  if (pieces < 0) return -1;
  std::vector<tinyserve::Piece> list;
  for (int i = 0; i < pieces; ++i) {
    if (lengths[i] < 0) return -1;
    list.push_back({slots[i], {tokens, static_cast<std::size_t>(lengths[i])}});
    tokens += lengths[i];
  }
  return model->forward(list, {next, static_cast<std::size_t>(pieces)}) ? 0 : -1;
}

TINYSERVE_API void tinyserve_release(Model* model, int slot) { model->release(slot); }

TINYSERVE_API void tinyserve_range_push(const char* name) { tinyserve::range_push(name); }
TINYSERVE_API void tinyserve_range_pop() { tinyserve::range_pop(); }
TINYSERVE_API void tinyserve_mark(const char* name) { tinyserve::mark(name); }
