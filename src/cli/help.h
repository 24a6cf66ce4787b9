/* The help text of each command, after its options. Must not know: options (these are in the files of the
 * commands). Read next: arguments.c. */
#ifndef WEFT_SRC_CLI_HELP_H
#define WEFT_SRC_CLI_HELP_H

#define weft__help_train                                                                                     \
    "Without --run the folder is runs/TYPE-SIZE-DEVICE-N, with the first N that was never used. It holds\n"  \
    "checkpoints, metrics.jsonl, metrics.csv, log.txt, samples, config.yaml and report.html.\n"              \
    "Ctrl-C saves and stops; 'weft resume' goes on to the same bits. SIGUSR1 saves at once.\n"               \
    "WEFT_CONFIG names the configuration and WEFT_DEVICE the device where none is given.\n\n"                \
    "  weft init gpt > gpt.yaml\n"                                                                           \
    "  weft train gpt.yaml --set data.path=book.txt --set train.steps=1000\n"
#define weft__help_resume                                                                                    \
    "Logs are cut back to the newest checkpoint that is whole, and training goes on as if it had never\n"    \
    "stopped: the same seed, batches and bits.\n\n"                                                          \
    "  weft resume runs/gpt-L4-H4-E128-cpu-1 --set train.steps=4000\n"
#define weft__help_generate                                                                                  \
    "  weft generate runs/gpt-L4-H4-E128-cpu-1 --prompt 'KING:' --tokens 300 --temperature 0.8\n"
#define weft__help_predict                                                                                   \
    "INPUT has the kind of file the model was trained on (idx, csv, json, npy, batches of CIFAR-10),\n"      \
    "or of images a folder, or one. In csv the columns are found by their names; without names, and in\n"    \
    "the other kinds, it holds inputs only. Prints one line a row: the class and its probability, or the\n"  \
    "predicted numbers; of images the name of each before it.\n\n"                                           \
    "  weft predict runs/mlp-4-16-3-cpu-1 flowers.csv\n"
#define weft__help_eval "  weft eval runs/mlp-784-512-512-10-cpu-1 --json\n"
#define weft__help_show                                                                                      \
    "Coefficients and bias of linear and logistic, in the units of the data and standardised, as they\n"     \
    "were trained: text, --json or --csv. Of other models the table of layers.\n\n"                          \
    "  weft show runs/linear-10-1-cpu-1 --csv\n"
#define weft__help_runs    "  weft runs\n  weft runs other/folder\n"
#define weft__help_compare "  weft compare runs/gpt-L4-H4-E128-cpu-1 runs/gpt-L4-H4-E128-cpu-2\n"
#define weft__help_info    "  weft info runs/gpt-L4-H4-E128-cpu-1 --check\n"
#define weft__help_export                                                                                    \
    "The file is safetensors with the names and shapes of GPT-2's published weights; model.init reads it,\n" \
    "and so does other software.\n\n"                                                                        \
    "  weft export runs/gpt-L4-H4-E128-cpu-1 --out model.safetensors\n"
#define weft__help_tokenize                                                                                  \
    "TOKENIZER is the folder of GPT-2's encoder.json and vocab.bpe (or vocab.json and merges.txt), or a\n"   \
    "tokenizer.json, as every run of text has one. The text may be packed with gzip. Tokens are u16 "        \
    "behind\n"                                                                                               \
    "llm.c's header; above --shard of them there are several files, OUT-000000.bin, OUT-000001.bin, ...\n"   \
    "A text that spells a special token (<|endoftext|>) has it.\n\n"                                         \
    "  weft tokenize book.txt --tokenizer gpt2 --out book.bin\n"                                             \
    "  weft train gpt.yaml --set data.path=book.bin --set data.tokenizer_path=gpt2\n"
#define weft__help_init                                                                                      \
    "gpt2 is GPT-2 small, with 124 million parameters, llama a gpt of Llama's architecture. The file goes\n" \
    "to standard output, or to --out, which must not exist.\n\n"                                             \
    "  weft init gpt --out gpt.yaml\n"
#define weft__help_demo                                                                                      \
    "NAME is gpt (characters of Weft's own source text, about two minutes), mlp (spirals of points, some\n"  \
    "seconds) or xor (the smallest network there is, at once).\n\n"                                          \
    "  weft demo gpt\n"
#define weft__help_devices "  weft devices\n"
#define weft__help_doctor  "  weft doctor\n"
#define weft__help_plan                                                                                      \
    "Plans a training step of the configuration and computes nothing: nothing is put on the device, which\n" \
    "need not be there (cuda is then a card of compute capability 9.0). Prints the memory of its peak by\n"  \
    "what it is for, the largest values by layer, what would take less, and what the step comes to. Data\n"  \
    "are read where they are there, and wanted where model.vocab does not say how many tokens there "        \
    "are.\n\n"                                                                                               \
    "  weft plan gpt.yaml --device cuda --set train.batch=64 --set train.precision=bf16\n"
#define weft__help_profile                                                                                   \
    "Trains as 'weft train' would, without a run folder, and prints the time of a step by kernel and by\n"   \
    "stage. Every command is timed, which keeps them from overlapping, so that a step takes somewhat\n"      \
    "longer than in training. The bound is the least time that the machine's peaks allow: f32 operations\n"  \
    "at the rate of a large product, bytes at the rate of changing as much memory as is in use, both\n"      \
    "measured after the warm-up. What finds its operands in a cache can be above 100 %. The trace opens\n"   \
    "in ui.perfetto.dev.\n\n"                                                                                \
    "  weft profile gpt.yaml --steps 50 --trace trace.json\n"
#define weft__help_verify                                                                                    \
    "Computes the first step's loss and gradients on both, and names the first node whose values differ\n"   \
    "by more than its dtype allows; the exit status is then 1. All nodes are kept in memory: a small\n"      \
    "train.batch will do. Then the losses of whole steps are compared.\n\n"                                  \
    "  weft verify gpt.yaml --devices cpu,interp --set train.batch=2\n"                                      \
    "  weft verify gpt.yaml --devices cpu   # with fusion against without\n"
#define weft__help_bench                                                                                     \
    "WORKLOAD is one of those that 'weft bench list' shows. Times are of whole training steps, the\n"        \
    "data already in memory; without --data, data of the same shape is made up.\n\n"                         \
    "  weft bench chargpt_small --json\n"

#endif
