// The figures of the rules' formulas that come from neither the target nor an argument. Guesses and limits (those named
// kGuessed... and kMost...) bound the code and the search. The others were fitted to the kernels of bench/kernels
// (`./dev bench kernels`) on x86-64 servers, with AVX-512 and limited to AVX2. Shares of a cache are numerators over
// the denominator in the name.
#pragma once
#include <cstdint>

namespace relaxc::cost_model {

// ---- Registers, in vectors

// Left free by the accumulators and the vectors of one operand, for the current and the next element of the other one.
constexpr int64_t kElementRegisters = 2;
// The same for products in panels: one, or three where there are many registers, since earlier loads need some. With no
// register left, LLVM spills an accumulator as soon as it unrolls.
constexpr int64_t kManyRegisters = 32, kSpareOfMany = 3, kSpareOfFew = 1;
// Winograd's products have so many accumulators: enough to hide the latency of the FMA, and few enough that LLVM does
// not spill them.
constexpr int64_t kEnoughSums = 16;
// They unroll this many channels, and fewer where so few registers are left that LLVM would spill.
constexpr int64_t kChannelStep = 4, kSpillingChannelStep = 2, kUnrollingRegisters = 6;

// ---- Tiles, in elements or vectors

constexpr int kFewestLanes = 4;           // shorter vectors do not pay for their setup
constexpr int64_t kFewestWholeLanes = 8;  // of a transpose's tile that leaves no rest; shorter ones cost more
constexpr int kMaskedBits = 512;          // of vectors with masks, which also gather faster than a loop does
constexpr int kFewestGatheredBits = 32;   // of elements that an instruction gathers
constexpr int64_t kScanVectors = 8;       // side by side, where each step of a scan goes to another row
// Side by side, where an element takes tens of instructions that wait for each other. The functions that are computed
// in double have two vectors of these for each vector of float.
constexpr int64_t kFunctionVectors = 4, kDoubleFunctionVectors = 2;
constexpr int64_t kFullTiles = 16;            // after which a partial one does not count
constexpr int64_t kMostRows = 14;             // of a reduction's tile; more rows only make the code longer
constexpr int64_t kMostSymbolicRows = 8;      // there is code for each number of rows that the last tile may have
constexpr int64_t kMostBandedRows = 4;        // the same of a product in bands, whose epilogue is long in each of them
constexpr int64_t kMostPixelRows = 4;         // of a convolution's tile, which has columns, too
constexpr int64_t kMostSymbolicColumns = 14;  // the same, or patches of Winograd's, where each number left has its code
// The same beside branches, with which LLVM would spill more sums; fewer reuse weights too little.
constexpr int64_t kMostColumnsOfOpenBorder = 10, kFewestColumnsOfOpenBorder = 4;
constexpr int64_t kPatchesOfRow = 4;       // in a register tile of Winograd's, where images have an unknown size
constexpr int64_t kMostFilterVectors = 4;  // side by side
constexpr int kSideBySide = 2;             // vectors of columns of a tile, panels of a tile
constexpr int kManyVectors = 5;            // of columns, that are taken two by two although their number is odd
constexpr int64_t kMostColumnVectors = 4;  // of a reduction's tile, that users and tuners may choose
constexpr int64_t kVectorsOfOneRow = 8, kVectorsOfSymbolicRow = 4;  // which uses each vector of columns once
constexpr int kStreams = 4;         // panels that a single row reads at once, as it waits for memory
constexpr int64_t kFewestRows = 6;  // of a tile, where another axis has more: fewer do not hide the latency of sums
constexpr int64_t kLeastPaddedPart = 16;             // 1/16 of a product's columns may be padding
constexpr int kFewestWideRows = 4;                   // of a tile on two panels: fewer reuse each vector too little
constexpr int64_t kNarrowWindow = 3;                 // columns of a window that reads its border by conditions
constexpr int64_t kFewPixelsOfBlock = 64;            // of a block of channels, whose rows are not copied one by one
constexpr int64_t kMostStep = 8, kMostWideStep = 4;  // iterations of a sum unrolled; where accumulators fill registers
constexpr int64_t kMostStepOfProducts = 2;           // where products and accumulators fill them
constexpr int64_t kLongSum = 2048;     // iterations that make kMostStep worth its compile time in a wide tile
constexpr int64_t kShortSum = 32;      // iterations of a sum that takes less time than storing it in memory
constexpr int64_t kMostParts = 64;     // of a sum, of a row of patches
constexpr int64_t kMostRowTiles = 64;  // in a block of rows, that users and tuners may choose

// ---- Matrix registers

constexpr int64_t kFewestTileRows = 4;   // for fewer, a tile of 16 rows is slower than vectors
constexpr int64_t kManyTileRows = 7;     // tiles of rows: an odd one more or less does not count
constexpr int64_t kFewestRowBlocks = 4;  // of a product, that are laid out by the threads that use them
constexpr int64_t kMostTileGroups = 64;  // of row tiles, that users and tuners may choose

// ---- Windows, of pooling and depthwise convolutions

constexpr int64_t kMostWindowSteps = 64;        // instructions of an unrolled window
constexpr int64_t kMostWindowTileSteps = 350;   // the same of all rows of a tile
constexpr int64_t kMostWindowRows = 7;          // that share what their windows read
constexpr int64_t kMostSymbolicWindowRows = 4;  // the same where there is code for each number that the last tile has
constexpr int64_t kFewestTapsOfCopy = 9;        // of a window, for each element that a copy with its border makes
constexpr int64_t kRowTilesInBand = 8;          // that copy the border of an image together
constexpr int64_t kMostLaneStride = 4;          // between the lanes of a vector, which is picked from whole vectors
constexpr int64_t kFewestStridedBits = 32;      // of their elements

// ---- Caches

constexpr int64_t kBlockEighthsOfL2 = 5;        // for a block of rows; panels and results take the rest
constexpr int64_t kPanelQuartersOfL2 = 1;       // for a part of a panel
constexpr int64_t kBlockAndPanelsInL2 = 2;      // times L2: more than that is summed in parts
constexpr int64_t kPieceQuartersOfL1 = 1;       // for a thread's piece of an elementwise loop: operands and results fit
constexpr int64_t kFewestBytesTogether = 2048;  // of rows that go through several blocks, which hide their latency
// Of a convolution's sum: steps of a part, and tiles that read the part's weights in L1. Tiles of more pixels use each
// weight so often that it may come from L2.
constexpr int64_t kFewestDepthOfPart = 128, kFewestTilesOfPart = 4, kMostPixelsOfPart = 6;
constexpr int64_t kImageEighthsOfL2 = 7;        // for an image whose pixels are one line; several lines take a half
constexpr int64_t kSharedWeightHalvesOfL2 = 1;  // for weights that stay while rows of an image are read
constexpr int64_t kGroupSlack = 4;              // times the patches of a group in L2: more are cut into single rows
constexpr int64_t kMostPatchesOfGroup = 4096;   // of images of unknown size, however large the cache is
constexpr int64_t kSmallWeightsInL2 = 4;        // times L2: Winograd's weights that stay in L3 from run to run
constexpr int64_t kMostWinogradBytes = int64_t{256} << 20;  // of transformed weights
constexpr int64_t kFewestWinogradChannels = 16;             // for fewer, transforms take longer than products save
constexpr double kL2OverL3 = 4;                             // times as many bytes per cycle come from L2
constexpr double kOneReaderOfMemory = 3;                    // times the bytes per cycle of a core while all cores read
constexpr int64_t kTypicalChannels = 64;       // in and out of a Winograd convolution, for the size of its groups
constexpr int64_t kGuessedPixels = 56;         // of a symbolic extent of an image: ResNet's first stage
constexpr int64_t kRowsAhead = 64;             // rows of a panel from a prefetch to its use
constexpr int64_t kUnpackedRowsAhead = 128;    // the same of one that is unpacked in registers: 4 KiB of words
constexpr int64_t kStreamedBytesAhead = 8192;  // from a prefetch to its use, of a stream at the memory's bandwidth
constexpr int64_t kFewestFetchedRows = 8;      // of a tile whose panels are prefetched; 4 to 6 take 15% longer with it
constexpr int64_t kFewestRowsAhead = 4, kMostRowsAhead = 256;  // that users and tuners may choose

// ---- Attention

constexpr int64_t kFewestQueries = 8, kFewestKeys = 8;  // for fewer, copying keys takes longer than it saves
constexpr int64_t kFewestKeysInPanels = 192;            // values of fewer are read where they lie
constexpr int64_t kMostQueriesInBlock = 48;             // that a thread takes
constexpr int64_t kMostRowTilesOfScores = 16;           // of them, that users and tuners may choose

// ---- Time, in cycles

constexpr int64_t kCopyCycles = 2;        // for an element that is copied into a panel
constexpr double kSustainedLoads = 0.85;  // of the loads that ports can begin

// ---- Threads

// An artifact may run on a larger machine than the one it was compiled for.
constexpr int64_t kFewestCores = 16;
constexpr int64_t kWakesOfShare = 2;    // times as long as waking a core takes: what a core is woken for
constexpr int64_t kSharesPerCore = 4;   // pieces of work, so that threads end at about the same time
constexpr int64_t kSharesOfPanels = 8;  // a thread takes more panels than row tiles: an eighth of the pieces is enough
constexpr int64_t kGroupsPerTwoCores = 1;  // of Winograd's patches, if threads are to take whole groups
constexpr int64_t kFilterPanels = 4;       // that keep threads busy where rows of pixels are not shared
constexpr int64_t kElementwiseWork = 4;    // operations for an element
constexpr int64_t kLoopShares = 64;  // iterations of fused loops that keep all threads busy; the loops inside stay
constexpr int64_t kMostProducts = 1 << 20;               // of a batch, that are counted
constexpr int64_t kGuessedSum = 64, kMostSum = 1 << 16;  // iterations of a symbolic sum; the most that are counted

// ---- The cost of an expression that is computed at each use instead of once, in loads

constexpr int kCondition = 1, kLoad = 1, kFloatOperation = 2, kCall = 10;
constexpr int kMostRepeated = 5;  // up to this cost, repeating is cheaper than memory traffic
constexpr int kMostNodes = 100;   // of the expression: each of a chain of x + x doubles it

}  // namespace relaxc::cost_model
