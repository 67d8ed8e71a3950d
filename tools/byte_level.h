// The tokenizer of GPT-2 and its successors: byte-level byte-pair encoding (Radford et al., "Language Models are
// Unsupervised Multitask Learners", 2019), from Hugging Face's files.
#pragma once
#include <string>

#include "tools/vocabulary.h"

namespace relaxc::tools {

// Reads tokenizer.json, or vocab.json with the merges in merges.txt beside it; without these a text is cut at the
// longest token that fits. Throws a CompileError for a tokenizer of another kind, and for a file that is not
// understood.
Vocabulary read_byte_level(const std::string& path);

}  // namespace relaxc::tools
