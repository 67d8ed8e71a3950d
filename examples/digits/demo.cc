// A user of relaxc's C++ API: compiles a model of digits once, classifies all held-out scans in batches of several
// sizes, and draws some of them beside the answer. Usage: digits_demo FOLDER [MODEL]
#include <fmt/format.h>
#include <relaxc/npy.h>
#include <unistd.h>
#include <relaxc/relaxc.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <numeric>

using relaxc::Tensor;

namespace {

constexpr int kSide = 8, kClasses = 10, kColumns = 2;
const bool kColor = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");

std::string paint(const char* code, const std::string& text) {
  return kColor ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Scans [begin, end), as a view of the samples' memory.
Tensor batch_of(const Tensor& samples, int64_t begin, int64_t end) {
  return Tensor::view({end - begin, 1, kSide, kSide}, samples.dtype(), samples.data<float>() + begin * kSide * kSide,
                      std::make_shared<Tensor>(samples));
}

// The probabilities of all samples, batch by batch; the last batch is as small as it comes.
std::vector<float> classify(relaxc::Session& session, const Tensor& samples, int64_t batch) {
  std::vector<float> result;
  for (int64_t count = samples.shape()[0], begin = 0; begin < count; begin += batch) {
    Tensor probability = session.run({batch_of(samples, begin, std::min(count, begin + batch))})[0];
    result.insert(result.end(), probability.data<float>(), probability.data<float>() + probability.size());
  }
  return result;
}

// Brightness 0..1 between the 8x8 dots of a scan, so that it can be drawn twice as large.
double brightness(const float* scan, double row, double column) {
  auto dot = [&](int r, int c) { return scan[std::clamp(r, 0, kSide - 1) * kSide + std::clamp(c, 0, kSide - 1)]; };
  int r = static_cast<int>(std::floor(row)), c = static_cast<int>(std::floor(column));
  double y = row - r, x = column - c;
  return (1 - y) * ((1 - x) * dot(r, c) + x * dot(r, c + 1)) + y * ((1 - x) * dot(r + 1, c) + x * dot(r + 1, c + 1));
}

// A line of the drawing is two rows of dots: an upper half block in one grey on another.
std::string draw_line(const float* scan, int line) {
  std::string text;
  for (int column = 0; column < 2 * kSide; ++column) {
    auto at = [&](int row) { return brightness(scan, row / 2.0 - 0.25, column / 2.0 - 0.25); };
    double above = at(2 * line), below = at(2 * line + 1);
    if (kColor) {
      auto grey = [](double value) { return 232 + std::clamp(static_cast<int>(value * 23.99), 0, 23); };
      text += fmt::format("\x1b[38;5;{}m\x1b[48;5;{}m▀", grey(above), grey(below));
    } else {
      constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
      text += kShades[std::clamp(static_cast<int>((above + below) / 2 * 5), 0, 4)];
    }
  }
  return text + (kColor ? "\x1b[0m" : "");
}

std::string bar(double share) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  int eighths = static_cast<int>(std::lround(share * 80)), width = eighths / 8 + (eighths % 8 > 0);
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8] + std::string(static_cast<size_t>(10 - width), ' ');
}

// Beside the drawing: what was written, then the three likeliest classes.
std::string answer_line(const float* probability, int64_t label, int line) {
  std::vector<int> order(kClasses);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return probability[a] > probability[b]; });
  bool right = order[0] == label;
  if (line == 1) return paint("2", fmt::format("{:20}", fmt::format("written: {}", label)));
  if (line < 3 || line > 5) return std::string(20, ' ');
  int guess = order[static_cast<size_t>(line - 3)];
  std::string text = fmt::format("{} {} {:5.1f} %", guess, bar(probability[guess]), 100 * probability[guess]);
  return line > 3 ? paint("2", text) : paint(right ? "1;32" : "1;31", text);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "examples/digits";
  const std::string model = argc > 2 ? argv[2] : folder + "/digits.onnx";
  const Tensor samples = relaxc::read_npy(folder + "/samples.npy"), labels = relaxc::read_npy(folder + "/labels.npy");
  const int64_t count = samples.shape()[0];

  double start = now();
  relaxc::Session session(relaxc::compile_file(model).load());
  const double compile_seconds = now() - start;

  const std::vector<float> probabilities = classify(session, samples, count);
  std::vector<int64_t> right, wrong, shown;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = &probabilities[static_cast<size_t>(i * kClasses)];
    (std::max_element(row, row + kClasses) - row == labels.as_int(i) ? right : wrong).push_back(i);
  }
  for (size_t i = 0; i < 5; ++i) shown.push_back(right[i * right.size() / 5]);
  shown.push_back(wrong.empty() ? right.back() : wrong.front());  // a mistake is worth a look
  for (size_t first = 0; first < shown.size(); first += kColumns) {
    for (int line = 0; line < kSide; ++line) {
      for (size_t i = first; i < std::min(shown.size(), first + kColumns); ++i) {
        fmt::print(
            "  {}  {}", draw_line(samples.data<float>() + shown[i] * kSide * kSide, line),
            answer_line(&probabilities[static_cast<size_t>(shown[i] * kClasses)], labels.as_int(shown[i]), line));
      }
      fmt::print("\n");
    }
    fmt::print("\n");
  }

  const double accuracy = 100.0 * static_cast<double>(right.size()) / static_cast<double>(count);
  fmt::print("  accuracy  {} ({} of {} scans that training never saw)\n", paint("1", fmt::format("{:.1f} %", accuracy)),
             right.size(), count);
  fmt::print("  compile   {:.2f} s, once, for every batch size\n", compile_seconds);
  for (int64_t batch : {int64_t{1}, int64_t{7}, int64_t{64}, count}) {
    classify(session, samples, batch);  // the first run with new dims plans memory
    start = now();
    bool same = classify(session, samples, batch) == probabilities;
    double seconds = now() - start, batches = std::ceil(static_cast<double>(count) / static_cast<double>(batch));
    fmt::print("  batch {:3}  {:7.3f} ms a batch, {:7.2f} µs an image{}\n", batch, 1e3 * seconds / batches,
               1e6 * seconds / static_cast<double>(count), same ? "" : ", but other probabilities");
  }
  return accuracy > 95 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
