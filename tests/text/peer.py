"""Compares Weft's tokenizers with the Python package `tokenizers`: ids, ids with special tokens, decoded texts.

    python3 tests/text/peer.py LIBWEFT.so [NAME...]     names as in TOKENIZERS, or files

It trains a small tokenizer of each kind with `tokenizers`, saves it, loads it in Weft, and compares COUNT texts. The
texts are drawn from a seed: all scripts, emoji, code, white space, broken UTF-8.
"""
import ctypes
import os
import random
import sys
import tempfile
import unicodedata

import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

COUNT = int(os.environ.get("WEFT_PEER_TEXTS", "2000"))
SEED = int(os.environ.get("WEFT_SEED", "1"))

# ---- Weft ----


class Weft:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.weft_last_error.restype = ctypes.c_char_p
        self.lib.weft_tokenizer_vocabulary.restype = ctypes.c_size_t

    def must(self, status):
        if status != 0:
            raise RuntimeError(self.lib.weft_last_error(None).decode(errors="replace"))

    def load(self, path):
        t = ctypes.c_void_p()
        self.must(self.lib.weft_tokenizer_load(None, path.encode(), ctypes.byref(t)))
        return t

    def encode(self, t, data, special=False):
        call = self.lib.weft_tokenizer_encode_special if special else self.lib.weft_tokenizer_encode
        count = ctypes.c_size_t()
        capacity = 4 * len(data) + 64
        ids = (ctypes.c_int32 * capacity)()
        status = call(t, data, ctypes.c_size_t(len(data)), ids, ctypes.c_size_t(capacity), ctypes.byref(count))
        if status != 0 and count.value > capacity:
            capacity = count.value
            ids = (ctypes.c_int32 * capacity)()
            status = call(t, data, ctypes.c_size_t(len(data)), ids, ctypes.c_size_t(capacity), ctypes.byref(count))
        self.must(status)
        return ids[:count.value]

    def pair(self, t, data, other):
        capacity = 4 * (len(data) + len(other)) + 4096
        ids, types, count = (ctypes.c_int32 * capacity)(), (ctypes.c_int32 * capacity)(), ctypes.c_size_t()
        self.must(self.lib.weft_tokenizer_encode_pair(
            t, data, ctypes.c_size_t(len(data)), other, ctypes.c_size_t(len(other)), ids, types,
            ctypes.c_size_t(capacity), ctypes.byref(count)))
        return ids[:count.value], types[:count.value]

    def decode(self, t, ids):
        array = (ctypes.c_int32 * max(1, len(ids)))(*ids)
        size = ctypes.c_size_t()
        self.must(self.lib.weft_tokenizer_decode(t, array, ctypes.c_size_t(len(ids)), None, ctypes.c_size_t(0),
                                                 ctypes.byref(size)))
        out = ctypes.create_string_buffer(size.value + 1)
        self.must(self.lib.weft_tokenizer_decode(t, array, ctypes.c_size_t(len(ids)), out, size, ctypes.byref(size)))
        return out.raw[:size.value]

    def stream(self, t, ids):
        decoder, text, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        self.must(self.lib.weft_decoder_open(t, ctypes.byref(decoder)))
        out = b""
        for i in ids:
            self.must(self.lib.weft_decoder_push(decoder, ctypes.c_int32(i), ctypes.byref(text), ctypes.byref(size)))
            out += ctypes.string_at(text, size.value)
        self.must(self.lib.weft_decoder_finish(decoder, ctypes.byref(text), ctypes.byref(size)))
        out += ctypes.string_at(text, size.value)
        self.lib.weft_decoder_free(decoder)
        return out


# ---- texts ----

SENTENCES = [
    "All human beings are born free and equal in dignity and rights.", "I'm sure you're right, we'll see: it's 12:30!",
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren.", "Größe, Straße, Übermut – „Zitat“ …",
    "Tous les êtres humains naissent libres et égaux en dignité et en droits.", "L'été, où ça? Cœur naïf, garçon.",
    "Todos los seres humanos nacen libres e iguales en dignidad y derechos.", "¿Qué? ¡Mañana, señor!",
    "Все люди рождаются свободными и равными в своём достоинстве и правах.", "Усі люди народжуються вільними",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.", "人人生而自由,在尊严和权利上一律平等。",
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。", "カタカナ ﾊﾝｶｸ ガ",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.", "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता",
    "মানুষ সমান মর্যাদা", "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน",
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng.", "İstanbul'da ığdır, ŞÇĞ", "Ǆ ǅ ﬁ ﬂ ﬀ ﷺ ½ ² ³ Ⅳ ① Ａｂｃ１２３",
    "👨‍👩‍👧 😀🎉 👍🏽 🇩🇪 ❤️ ☺", "x = 3.14e-10; if (a[i] != NULL) { return *p->next; } // done", "def f(x):\n\treturn x**2\n",
    "<html><body class=\"a\">&amp;</body></html>", "SELECT * FROM t WHERE id=42;", "https://example.com/a?b=c&d=%20",
    "    for (int i = 0; i < 10; i++)\r\n        printf(\"%d\\n\", i);\r\n", "1234567890 12345 0x1F 1,000,000.00 ٣٤٥ १२३",
    "e\u0301 A\u030a o\u0308\u0304 \u1e9b\u0323 q\u0307\u0323", "don't can't we've they're 'tis ROCK'N'ROLL I'LL",
    "\u00a0\u2003\u3000nbsp\u200b\u200d\ufeff", "tab\there\n\n\nnew\u2028line\u0085x\x0bv\x0cf", "A B  C   D    E", "",
]
SPECIALS = ["<|endoftext|>", "<s>", "</s>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "<pad>", "<extra>", "newword", " <mask>"]


def random_point(rng):
    while True:
        limit = rng.choice([0x80, 0x250, 0x800, 0x3000, 0xffff, 0x1ffff])
        c = rng.randrange(limit + 1)
        # Characters that newer versions of Unicode added have other properties in the tables of each library
        if 0xd800 <= c < 0xe000 or unicodedata.ucd_3_2_0.category(chr(c)) == "Cn":
            continue
        return chr(c)


def make_text(rng):
    """Bytes, most of them UTF-8."""
    kind = rng.randrange(8)
    if kind < 3:
        text = rng.choice([" ", "", "\n", "  "]).join(rng.choice(SENTENCES) for _ in range(rng.randrange(1, 4)))
    elif kind == 3:
        text = "".join(random_point(rng) for _ in range(rng.randrange(1, 40)))
    elif kind == 4:
        words = " ".join(SENTENCES).split(" ")
        text = rng.choice([" ", "  ", "\n", "\t"]).join(rng.choice(words) for _ in range(rng.randrange(1, 20)))
    elif kind == 5:
        text = "".join(rng.choice([" ", "a", "B", "é", "1", "\n", "\t", "'s", ".", "中", "\u0301", "_", "-", "▁"])
                       for _ in range(rng.randrange(1, 60)))
    elif kind == 6:
        parts = [rng.choice(SENTENCES)[:20] + rng.choice(["", " ", "  "]) + rng.choice(SPECIALS)
                 + rng.choice(["", " ", "\n"]) for _ in range(rng.randrange(1, 4))]
        text = "".join(parts)
    else:
        data = bytearray(rng.choice(SENTENCES).encode())
        for _ in range(rng.randrange(1, 4)):
            data.insert(rng.randrange(len(data) + 1), rng.randrange(128, 256))
        return bytes(data)
    return text.encode()


# ---- tokenizers ----

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = ["<0x%02X>" % i for i in range(256)]


def corpus():
    with open("tests/text/peer.py", encoding="utf-8") as f:
        lines = f.read().split("\n")
    return SENTENCES * 3 + lines


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def byte_level(pre, size=900, ignore_merges=False, specials=("<|endoftext|>",), normalizer=None):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return train(t, trainer)


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))
    t.add_tokens([AddedToken("newword", normalized=True), AddedToken("<extra>", lstrip=True, rstrip=True)])
    return t


def roberta():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), specials=["<s>", "<pad>", "</s>", "<unk>"])
    t.add_special_tokens([AddedToken(" <mask>", lstrip=True), AddedToken("[MASK]", single_word=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def llama3():
    t = byte_level(split_then_bytes(LLAMA3), ignore_merges=True, specials=["<s>", "<|endoftext|>"])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)])])
    return t


def smollm():
    return byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False)]))


def falcon():
    return byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))


def bloom():
    return byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(" ?[^(\\s|[.,!?…。，、।۔،])]+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))


def byte_normalizer():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.ByteLevel()])
    t.pre_tokenizer = pre_tokenizers.Split(Regex("Ġ?[^Ġ]+|Ġ+"), "isolated")
    t.decoder = decoders.ByteLevel()
    return train(t, trainers.BpeTrainer(vocab_size=800, show_progress=False, special_tokens=["<s>"],
                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def with_bytes(tokenizer):
    """Adds <0x00> to <0xFF> to the vocabulary of a trained BPE, and switches the fallback on."""
    import json
    data = json.loads(tokenizer.to_str())
    specials = ["<unk>", "<s>", "</s>"]
    old = data["model"]["vocab"]
    order = specials + BYTES + [w for w in sorted(old, key=old.get) if w not in specials]
    data["model"]["vocab"] = {w: i for i, w in enumerate(order)}
    data["model"].update(byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    for a in data["added_tokens"]:
        a["id"] = order.index(a["content"])
    return Tokenizer.from_str(json.dumps(data))


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    train(t, trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>", "<s>", "</s>"], limit_alphabet=80,
                                 show_progress=False))
    t = with_bytes(t)
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.pre_tokenizer = None
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                     special_tokens=[("<s>", 1)])
    return t


def metaspace(scheme, split):
    t = llama2()
    t.normalizer = None
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return t


def gemma():
    t = llama2()
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return t


def old_bpe():
    """The BPE of GPT-1: suffix of words, unknown characters."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.BPEDecoder(suffix="</w>")
    return train(t, trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>"], limit_alphabet=90,
                                        end_of_word_suffix="</w>", show_progress=False))


def prefix_bpe():
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.decoder = decoders.WordPiece()
    return train(t, trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>"], limit_alphabet=90,
                                        continuing_subword_prefix="##", show_progress=False))


def bert(lowercase):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    train(t, trainers.WordPieceTrainer(vocab_size=700, limit_alphabet=150, show_progress=False,
                                       special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def unigram(normalizer, byte_fallback=False):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    train(t, trainers.UnigramTrainer(vocab_size=500, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>",
                                     show_progress=False))
    if byte_fallback:
        import json
        data = json.loads(t.to_str())
        data["model"]["vocab"] += [[b, -1.0] for b in BYTES]
        data["model"]["byte_fallback"] = True
        t = Tokenizer.from_str(json.dumps(data))
        t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                     special_tokens=[("</s>", 1)])
    return t


def precompiled():
    """The map of characters that SentencePiece compiles for nmt_nfkc."""
    try:
        import io
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    except ImportError:
        print("precompiled: skipped, it needs the Python packages sentencepiece and protobuf")
        return None
    data = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20), model_writer=data, vocab_size=400, model_type="unigram",
        normalization_rule_name="nmt_nfkc", hard_vocab_limit=False, minloglevel=2)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(data.getvalue())
    t = unigram(normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap))
    return t


def word_level():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Nmt(),
                                         normalizers.Replace(Regex("[0-9]+"), "0")])
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return train(t, trainers.WordLevelTrainer(special_tokens=["<unk>"], vocab_size=300, show_progress=False))


def splits(behavior, invert):
    return byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\w+|\d"), behavior, invert),
        pre_tokenizers.Split(",", behavior, invert),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), size=600)


TOKENIZERS = {
    "gpt2": gpt2, "roberta": roberta, "llama3": llama3, "smollm": smollm, "falcon": falcon, "bloom": bloom,
    "qwen2": lambda: byte_level(split_then_bytes(QWEN2), normalizer=normalizers.NFC()),
    "o200k": lambda: byte_level(split_then_bytes(O200K)),
    "byte_normalizer": byte_normalizer, "llama2": llama2, "gemma": gemma,
    "metaspace_first": lambda: metaspace("first", True), "metaspace_never": lambda: metaspace("never", True),
    "metaspace_whole": lambda: metaspace("always", False),
    "old_bpe": old_bpe, "prefix_bpe": prefix_bpe, "bert": lambda: bert(True), "bert_cased": lambda: bert(False),
    "unigram_nfkc": lambda: unigram(normalizers.NFKC()),
    "unigram_bytes": lambda: unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD()]), True),
    "precompiled": precompiled, "word_level": word_level,
}
for _behavior in ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]:
    for _invert in [False, True]:
        TOKENIZERS["split_%s%s" % (_behavior, "_inverted" if _invert else "")] = \
            lambda b=_behavior, i=_invert: splits(b, i)

# ---- SentencePiece ----

SENTENCEPIECES = {
    "sp_unigram_nmt_nfkc": {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc", "vocab_size": 500},
    "sp_unigram_bytes": {"model_type": "unigram", "normalization_rule_name": "identity", "vocab_size": 700,
                         "byte_fallback": True, "remove_extra_whitespaces": False},
    "sp_unigram_defined": {"model_type": "unigram", "vocab_size": 500, "user_defined_symbols": ["newword", "<extra>"]},
    "sp_bpe_llama2": {"model_type": "bpe", "normalization_rule_name": "identity", "vocab_size": 900,
                      "byte_fallback": True, "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True,
                      "split_digits": True},
    "sp_bpe_nfkc_cf": {"model_type": "bpe", "normalization_rule_name": "nfkc_cf", "vocab_size": 900},
    "sp_bpe_gemma": {"model_type": "bpe", "normalization_rule_name": "identity", "vocab_size": 900,
                     "byte_fallback": True, "remove_extra_whitespaces": False, "add_dummy_prefix": False,
                     "user_defined_symbols": ["\n", "\n\n", "▁▁", "▁▁▁▁", "<extra>"], "pad_id": 3},
}


def train_sentencepiece(name, path):
    try:
        import io
        import sentencepiece
    except ImportError:
        print("%s: skipped, it needs the Python package sentencepiece" % name)
        return None
    data = io.BytesIO()
    lines = [line for line in corpus() if line.strip()]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=data, hard_vocab_limit=False,
                                             minloglevel=2, character_coverage=0.99, **SENTENCEPIECES[name])
    with open(path, "wb") as f:
        f.write(data.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=data.getvalue())


def is_tie(processor, a, b):
    """Whether two ways to cut a text have the same score. SentencePiece adds up f32, Weft and `tokenizers` f64, so
    rounding chooses between such ways."""
    return (processor.decode(a) == processor.decode(b)
            and abs(sum(map(processor.get_score, a)) - sum(map(processor.get_score, b))) < 1e-4)


def compare_sentencepiece(weft, name, processor, loaded, texts, shown=3):
    """Returns how many texts differ. In Weft, a text that spells <s> becomes this token, as with transformers."""
    differ = ties = 0
    for data in texts:
        text = data.decode(errors="replace")
        if any(s in text for s in ["<s>", "</s>", "<unk>", "<pad>"]) or "\0" in text:
            continue
        expected = processor.encode(text)
        got = weft.encode(loaded, data)
        problem = None
        if got != expected and is_tie(processor, got, expected):
            ties += 1
        elif got != expected:
            problem = "ids %s, not %s: %s" % (got, expected, [processor.id_to_piece(i) for i in expected])
        elif processor.unk_id() not in expected:
            decoded = weft.decode(loaded, expected).decode(errors="replace")
            if decoded != processor.decode(expected):
                problem = "decoded %r, not %r" % (decoded, processor.decode(expected))
        if problem:
            differ += 1
            if differ <= shown:
                print("%s: %r: %s" % (name, show(data), problem[:1500]))
    if ties:
        print("%s: in %d texts, another way of the same score" % (name, ties))
    return differ


def check_sentencepiece(weft, name, folder, texts):
    path = os.path.join(folder, "tokenizer.model")
    processor = train_sentencepiece(name, path)
    if not processor:
        return 0
    loaded = weft.load(path)
    differ = compare_sentencepiece(weft, name, processor, loaded, texts)
    again = os.path.join(folder, "again.json")  # the same as tokenizer.json, which `tokenizers` reads, too
    weft.must(weft.lib.weft_tokenizer_save(loaded, again.encode()))
    differ += compare_sentencepiece(weft, name + ", saved", processor, weft.load(again), texts)
    Tokenizer.from_file(again)
    weft.lib.weft_tokenizer_free(loaded)
    return differ


# ---- training ----


def check_training(weft, name, folder):
    """Trains the same tokenizer in both libraries. Returns 1 if merges or vocabulary differ."""
    pattern = name[len("train_"):]
    text = "\n".join(corpus() * 3)
    if os.environ.get("WEFT_TEST_DATA") and os.path.exists(os.environ["WEFT_TEST_DATA"] + "/tinyshakespeare.txt"):
        with open(os.environ["WEFT_TEST_DATA"] + "/tinyshakespeare.txt", encoding="utf-8", newline="") as f:
            text += f.read()
    pre = pre_tokenizers.ByteLevel(add_prefix_space=False) if pattern == "gpt2" else split_then_bytes(LLAMA3)
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    t.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=3000, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    path = os.path.join(folder, "text.txt")
    with open(path, "wb") as f:
        f.write(text.encode())

    class Options(ctypes.Structure):
        _fields_ = [("vocabulary", ctypes.c_size_t), ("pattern", ctypes.c_int), ("special", ctypes.c_void_p),
                    ("special_count", ctypes.c_size_t), ("min_count", ctypes.c_uint64)]

    trained = ctypes.c_void_p()
    paths = (ctypes.c_char_p * 1)(path.encode())
    options = Options(3000, 1 if pattern == "gpt2" else 0, None, 0, 0)
    weft.must(weft.lib.weft_tokenizer_train(None, paths, ctypes.c_size_t(1), ctypes.byref(options),
                                            ctypes.byref(trained)))
    saved = os.path.join(folder, "tokenizer.json")
    weft.must(weft.lib.weft_tokenizer_save(trained, saved.encode()))
    weft.lib.weft_tokenizer_free(trained)
    import json
    expected = json.loads(t.to_str())["model"]
    with open(saved, encoding="utf-8") as f:
        got = json.load(f)["model"]
    same = got["vocab"] == expected["vocab"] and got["merges"] == expected["merges"]
    if not same:
        print("%s: merges differ: %s" % (name, [p for p in zip(expected["merges"], got["merges"]) if p[0] != p[1]][:3]))
    return compare(weft, name, Tokenizer.from_file(saved), weft.load(saved),
                   [s.encode() for s in SENTENCES]) + (0 if same else 1)


TRAINED = ["train_cl100k", "train_gpt2"]

# ---- comparing ----


def show(data):
    return data if len(data) <= 300 else data[:300] + b"..."


def compare(weft, name, tokenizer, loaded, texts, shown=3):
    """Returns how many texts differ."""
    differ = 0
    for data in texts:
        text = data.decode(errors="replace")
        try:
            expected = tokenizer.encode(text, add_special_tokens=False).ids
        except Exception as e:  # the Python side refuses the text
            expected = None
        got = None
        try:
            got = weft.encode(loaded, data)
        except RuntimeError as e:
            if expected is not None:
                print(name, "fails:", e, show(data))
        problem = None
        if got != expected:
            problem = "ids %s, not %s" % (got, expected)
        elif expected is not None:
            other = texts[0].decode(errors="replace")
            pair = tokenizer.encode(text, other)
            if weft.pair(loaded, data, texts[0]) != (pair.ids, pair.type_ids):
                problem = "ids of a pair, not %s, %s" % (pair.ids, pair.type_ids)
            special = tokenizer.encode(text).ids
            if weft.encode(loaded, data, True) != special:
                problem = "ids with special tokens, not %s" % special
            back = tokenizer.decode(expected, skip_special_tokens=False) if expected else ""
            decoded = weft.decode(loaded, expected)
            if decoded.decode(errors="replace") != back:
                problem = "decoded %r, not %r" % (decoded, back)
            elif weft.stream(loaded, expected).decode() != back:
                problem = "streamed another text"
        if problem:
            differ += 1
            if differ <= shown:
                print("%s: %r: %s" % (name, show(data), problem[:1500]))
    return differ


def main():
    weft = Weft(sys.argv[1])
    names = sys.argv[2:] or list(TOKENIZERS) + list(SENTENCEPIECES) + TRAINED
    rng = random.Random(SEED)
    texts = [make_text(rng) for _ in range(COUNT)]
    failed = 0
    print("tokenizers %s, seed %d, %d texts" % (tokenizers.__version__, SEED, len(texts)))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if name in SENTENCEPIECES or name in TRAINED:
                differ = (check_sentencepiece(weft, name, folder, texts) if name in SENTENCEPIECES
                          else check_training(weft, name, folder))
                print("%s: %s" % (name, "equal" if not differ else "%d texts differ" % differ))
                failed += differ
                continue
            tokenizer = Tokenizer.from_file(name) if name.endswith(".json") else TOKENIZERS[name]()
            if not tokenizer:
                continue
            tokenizer.no_truncation()
            tokenizer.no_padding()
            path = os.path.join(folder, "tokenizer.json")
            tokenizer.save(path)
            loaded = weft.load(path)
            differ = compare(weft, name, tokenizer, loaded, texts)
            again = os.path.join(folder, "again.json")  # what Weft writes, both read
            weft.must(weft.lib.weft_tokenizer_save(loaded, again.encode()))
            differ += compare(weft, name + ", saved", Tokenizer.from_file(again), weft.load(again), texts[:100])
            weft.lib.weft_tokenizer_free(loaded)
            print("%s: %s" % (name, "equal" if not differ else "%d texts differ" % differ))
            failed += differ
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
