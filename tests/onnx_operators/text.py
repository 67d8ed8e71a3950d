"""Operators on text, and features of it."""
from draw import Unfit
import formulas

WORDS = ["apple", "Banana", "cherry pie", "", "x", "ÄPFEL", "straße", "日本", "a,b,c", "a b  c", "Monday", "monday", "12"]


def words(g, shape, choices=WORDS):
    size = 1
    for dim in shape:
        size *= dim
    return g.given("string", shape, [g.one_of(choices) for _ in range(size)])


def normalizer(g):
    ascii_words = [word for word in WORDS if word.isascii()]
    shape = g.one_of([[g.integer(1, 5)], [1, g.integer(1, 5)]])
    attributes = g.maybe(0.6, case_change_action=g.one_of(["LOWER", "UPPER", "NONE"]), is_case_sensitive=g.integer(0, 1),
                         stopwords=["monday", "x"])
    x = words(g, shape, ascii_words)
    g.node([x], **attributes)
    formulas.string_normalizer(g, x, attributes)


def concat(g):
    shape = g.shape()
    g.node([words(g, shape), words(g, g.partner(shape))])


def split(g):
    attributes = g.maybe(0.5, delimiter=g.one_of([",", " ", "", "a"]), maxsplit=g.integer(1, 3))
    g.node([words(g, g.shape(0, 3))], count=2, **attributes)


def regex(g):
    pattern = g.one_of(["a.*", "[a-z]+", r"\w+", "[A-Za-z ]*", "(apple|x)?", r"\d{1,2}", ".+", "[^,]*", "Ban(an)+a", "^x$"])
    g.node([words(g, g.shape())], pattern=pattern)


def tf_idf(g):
    strings = g.chance(0.3)
    low, high = 1, g.integer(1, 3)
    if g.chance(0.3):
        low = high
    numbers = lambda count: [g.integer(0, 5) for _ in range(count)]
    grams = {1: numbers(3), 2: numbers(4), 3: numbers(6)}
    grams[1] = g.random.sample(range(6), 3)
    pairs = g.random.sample([(a, b) for a in range(6) for b in range(6)], 2)
    triples = g.random.sample([(a, b, c) for a in range(4) for b in range(4) for c in range(4)], 2)
    pool = grams[1] + [n for pair in pairs for n in pair] + [n for triple in triples for n in triple]
    counts, kept = [0, 3, 7], pool
    if high < 3:
        counts, kept = [0, 3], pool[:7]
    if high < 2:
        counts, kept = [0], pool[:3]
    size = len(grams[1]) + (2 if high > 1 else 0) + (2 if high > 2 else 0)
    attributes = {"mode": g.one_of(["TF", "IDF", "TFIDF"]), "min_gram_length": low, "max_gram_length": high,
                  "max_skip_count": g.integer(0, 3), "ngram_counts": counts, "ngram_indexes": g.permutation(size)}
    if g.chance(0.5):
        attributes["weights"] = [g.integer(1, 8) / 4 for _ in range(size)]
    shape = g.one_of([[g.integer(1, 8)], [g.integer(1, 3), g.integer(1, 8)]])
    if strings:
        attributes["pool_strings"] = [f"w{n}" for n in kept]
        x = words(g, shape, [f"w{n}" for n in range(6)])
    else:
        attributes["pool_int64s"] = kept
        x = g.tensor(g.one_of(["int64", "int32"]), shape, lambda: g.integer(0, 5))
    g.node([x], **attributes)


OPERATORS = {
    "StringNormalizer": ((10,), normalizer), "StringConcat": ((20,), concat), "StringSplit": ((20,), split),
    "RegexFullMatch": ((20,), regex), "TfIdfVectorizer": ((9,), tf_idf),
}
