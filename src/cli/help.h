/* The help text of each command, after its options. Must not know: options (these are in the files of the
 * commands). Read next: arguments.c. */
#ifndef WEFT_SRC_CLI_HELP_H
#define WEFT_SRC_CLI_HELP_H

#define weft__help_train                                                                                     \
    "Without --run, the run folder is runs/TYPE-SIZE-DEVICE-N with the first unused N. It holds\n"           \
    "checkpoints, metrics.jsonl, metrics.csv, log.txt, samples, config.yaml and report.html.\n"              \
    "Ctrl-C saves and stops. 'weft resume' continues the run and gives the same bits as a run that was\n"    \
    "never stopped. SIGUSR1 saves at once.\n"                                                                \
    "Without CONFIG, WEFT_CONFIG names the configuration. WEFT_DEVICE names the device if neither\n"         \
    "--device nor the configuration does.\n"                                                                 \
    "\n"                                                                                                     \
    "  weft train text --data book.txt --minutes 5\n"                                                        \
    "  weft init gpt > gpt.yaml\n"                                                                           \
    "  weft train gpt.yaml --set data.path=book.txt --set train.steps=1000\n"
#define weft__help_launch                                                                                    \
    "COMMAND is train, resume or profile: the processes share the batches of each step. On several\n"        \
    "machines use mpirun or srun itself.\n"                                                                  \
    "\n"                                                                                                     \
    "  weft launch -n 4 -- train gpt.yaml\n"                                                                 \
    "  weft launch -n 4 -- profile gpt.yaml --steps 20\n"                                                    \
    "  mpirun -n 8 --host one:4,two:4 weft train gpt.yaml\n"                                                 \
    "  srun -N 2 --ntasks-per-node=4 --mpi=pmix weft train gpt.yaml\n"
#define weft__help_resume                                                                                    \
    "Cuts the logs back to the newest undamaged checkpoint. Training then continues as if it had never\n"    \
    "stopped, with the same seed, batches and bits.\n"                                                       \
    "\n"                                                                                                     \
    "  weft resume runs/gpt-L4-H4-E128-cpu-1 --set train.steps=4000\n"
#define weft__help_cv                                                                                        \
    "Divides the training data into K parts, the folds: at random, by train.seed, each with the "            \
    "same\nshares of the classes. For each fold, trains a run on the others and measures it on the fold. "   \
    "Prints\nthe scores, their mean and their standard deviation. For tables and images.\nThe folder holds " \
    "a run for each fold, and cv.json. Ctrl-C saves all runs; the same command with\n--run DIR continues "   \
    "them.\n\n  weft cv logistic --data flowers.csv --folds 10\n  weft cv mlp.yaml --set model.hidden=64 "   \
    "--run runs/hidden-64\n"
#define weft__help_sweep                                                                                     \
    "VALUES is a list such as 0.001,0.01,0.1 or [64],[64,64]. All combinations are trained, or "             \
    "with\n--random N of them N. With --random it may also be a range such as 0.0001..0.1. A range whose "   \
    "end is\nat least 10 times its beginning is drawn by its logarithm, as suits rates.\nThe folder holds "  \
    "a run for each combination, sweep.json, and sweep.html with the results over the\nvalues and the "      \
    "curves. Ctrl-C saves all runs; the same command with --run DIR continues\nthem. Runs that have ended "  \
    "are kept, also if values are added.\n\n  weft sweep mlp --data flowers.csv optimizer.lr=0.001,0.01 "    \
    "model.hidden=[16],[64,64]\n  weft sweep gpt.yaml optimizer.lr=0.0001..0.01 train.batch=8,16,32 "        \
    "--random 20\n"
#define weft__help_generate                                                                                  \
    "--json and --json-schema print the JSON value alone, without the prompt. The properties of an object\n" \
    "come in the order of the schema. docs/published.md lists the keywords of schemas. If --tokens are "     \
    "too\n"                                                                                                  \
    "few for the value, the exit code is 10.\n"                                                              \
    "\n"                                                                                                     \
    "  weft generate runs/gpt-L4-H4-E128-cpu-1 --prompt 'KING:' --tokens 300 --temperature 0.8\n"            \
    "  weft generate model.gguf --prompt 'A person, as JSON:' --json-schema person.json\n"
#define weft__help_chat                                                                                      \
    "Each line is a message. Lines may also come from a file or a pipe. /help lists what else you can\n"     \
    "write. Ctrl-C stops an answer, Ctrl-D ends. With --json or --json-schema each answer is a JSON "        \
    "value.\n"                                                                                               \
    "\n"                                                                                                     \
    "  weft chat SmolLM2-135M-Instruct --system 'Answer in one sentence.'\n"                                 \
    "  echo 'What is a loom?' | weft chat model.gguf --temperature 0\n"
#define weft__help_embed                                                                                     \
    "Prints a line for each line: the numbers of a vector of length 1, separated by tabs. Texts of "         \
    "similar\n"                                                                                              \
    "meaning have vectors of a large dot product, if the model was made for sentences.\n"                    \
    "\n"                                                                                                     \
    "  weft embed all-MiniLM-L6-v2 sentences.txt >vectors.tsv\n"                                             \
    "  echo 'a loom' | weft embed all-MiniLM-L6-v2 --json\n"
#define weft__help_classify                                                                                  \
    "Prints a line for each line: the likeliest class and its probability, separated by a tab.\n"            \
    "\n"                                                                                                     \
    "  weft classify distilbert-sst2 reviews.txt\n"                                                          \
    "  echo 'I like it' | weft classify distilbert-sst2 --json\n"
#define weft__help_predict                                                                                   \
    "INPUT is a file of the format that the model was trained on (idx, csv, json, npy, or batches of\n"      \
    "CIFAR-10). For images it is an image file or a folder of images.\n"                                     \
    "Columns of csv are found by their names. Files without names, and other formats, must hold only\n"      \
    "the inputs.\n"                                                                                          \
    "Prints a table with a header: the class and its probability, or the predicted numbers. For images\n"    \
    "and for several inputs each line begins with the name of the file.\n"                                   \
    "\n"                                                                                                     \
    "  weft predict runs/mlp-4-16-3-cpu-1 flowers.csv\n"                                                     \
    "  weft predict runs/mlp-4-16-3-cpu-1 a.csv b.csv --probabilities --out answers.csv\n"                   \
    "  grep -v '^#' raw.csv | weft predict runs/mlp-4-16-3-cpu-1 - --json\n"
#define weft__help_eval                                                                                      \
    "  weft eval runs/mlp-784-512-512-10-cpu-1 --json\n  weft eval runs/mlp-4-16-3-cpu-1 new-flowers.csv\n"
#define weft__help_show                                                                                      \
    "For linear and logistic models: prints the coefficients and the bias, both in the units of the\n"       \
    "data and standardised, as they were trained. The output is text, --json or --csv.\n"                    \
    "For other models: prints the table of layers.\n"                                                        \
    "\n"                                                                                                     \
    "  weft show runs/linear-10-1-cpu-1 --csv\n"
#define weft__help_runs                                                                                      \
    "The result is the validation R2, accuracy or loss: of the whole validation data if the run has\n"       \
    "ended, else of its last evaluation. The time is that of training. Columns that do not fit the\n"        \
    "terminal are left out.\n"                                                                               \
    "\n"                                                                                                     \
    "  weft runs\n"                                                                                          \
    "  weft runs other/folder --sort result\n"                                                               \
    "  weft runs --model mlp --where optimizer.lr=0.01\n"
#define weft__help_compare                                                                                   \
    "Shows first the values of the configuration that differ, then the results. --out writes a page with\n"  \
    "the curves of all runs in the same charts; it opens offline.\n"                                         \
    "\n"                                                                                                     \
    "  weft compare runs/gpt-L4-H4-E128-cpu-1 runs/gpt-L4-H4-E128-cpu-2\n"                                   \
    "  weft compare runs --out curves.html\n"
#define weft__help_info "  weft info runs/gpt-L4-H4-E128-cpu-1 --check\n"
#define weft__help_export                                                                                    \
    "--to c            NAME.c and NAME.h: C99 source without dependencies, which computes what the model\n"  \
    "                  predicts from raw values. More than 4 MiB of weights go to NAME.bin.\n"               \
    "--to safetensors  NAME.safetensors: the weights of any model, and in the metadata how to use them.\n"   \
    "--to gpt2         NAME.safetensors and config.json: a gpt with the names and shapes of GPT-2's "        \
    "published\n"                                                                                            \
    "                  weights. model.init and transformers read them.\n"                                    \
    "--to huggingface  a folder that transformers reads, of a run that began with a published model.\n"      \
    "--to gguf         NAME.gguf, for llama.cpp: of such a run, or of a published model itself.\n"           \
    "docs/export.md describes the files.\n"                                                                  \
    "\n"                                                                                                     \
    "  weft export runs/mlp-4-16-3-cpu-1 --to c --out src --name flowers\n"                                  \
    "  weft export runs/gpt-L4-H4-E128-cpu-1 --to gpt2 --out gpt2-folder\n"
#define weft__help_quantize                                                                                  \
    "MODEL is a folder of Hugging Face or a GGUF file. The new file is for llama.cpp and for Weft. The\n"    \
    "model is not loaded: one matrix after the other is read, packed and written.\n"                         \
    "With --data, the perplexity of the model on the text is measured before and after.\n"                   \
    "docs/published.md describes the formats.\n"                                                             \
    "\n"                                                                                                     \
    "  weft quantize SmolLM2-135M --to q4_k --data book.txt\n"                                               \
    "  weft quantize model-f16.gguf --to q8_0 --out model-q8_0.gguf\n"
#define weft__help_tokenize                                                                                  \
    "TOKENIZER is a tokenizer.json, which every run on text has in its folder, a .model file of\n"           \
    "SentencePiece, the folder of a published model, or the folder of GPT-2's encoder.json and vocab.bpe\n"  \
    "(or vocab.json and merges.txt). The text may be packed with gzip.\n"                                    \
    "The files hold tokens of u16 after llm.c's header. If there are more tokens than --shard, several\n"    \
    "files are written: OUT-000000.bin, OUT-000001.bin, ... Without --out the ids are printed.\n"            \
    "If the text contains the spelling of a special token (<|endoftext|>), it becomes that token.\n"         \
    "\n"                                                                                                     \
    "--train writes a tokenizer.json that Hugging Face's library reads, too. Its memory does not grow "      \
    "with\n"                                                                                                 \
    "the texts: it is at most about 1.5 GB.\n"                                                               \
    "\n"                                                                                                     \
    "  weft tokenize book.txt --tokenizer gpt2 --out book.bin\n"                                             \
    "  weft train gpt.yaml --set data.path=book.bin --set data.tokenizer_path=gpt2\n"                        \
    "  weft tokenize --train 8000 book.txt letters.txt.gz --out tokens\n"                                    \
    "  weft tokenize book.txt --tokenizer tokens\n"
#define weft__help_init                                                                                      \
    "gpt2 is GPT-2 small, with 124 million parameters. llama is a gpt with Llama's architecture.\n"          \
    "The configuration goes to standard output, or to the file of --out.\n"                                  \
    "\n"                                                                                                     \
    "  weft init gpt --out gpt.yaml\n"
#define weft__help_demo                                                                                      \
    "NAME is one of these:\n"                                                                                \
    "  gpt     learns characters of Weft's own source code, in about two minutes\n"                          \
    "  mlp     learns to tell spirals of points apart, in some seconds\n"                                    \
    "  xor     trains the smallest network there is, at once\n"                                              \
    "  device  tests a device against the CPU: memory, matmuls and training\n"                               \
    "\n"                                                                                                     \
    "  weft demo gpt\n"
#define weft__help_devices "  weft devices\n"
#define weft__help_doctor  "  weft doctor\n"
#define weft__help_plan                                                                                      \
    "Plans a training step without computing anything. The device is not used and need not exist.\n"         \
    "If it is absent, cuda stands for a card of compute capability 9.0.\n"                                   \
    "Prints:\n"                                                                                              \
    "  - the memory at the peak of the step, by use\n"                                                       \
    "  - the largest values, by layer\n"                                                                     \
    "  - changes of the configuration that would save memory\n"                                              \
    "  - the work of the step\n"                                                                             \
    "  - with --ranks: the memory of one of several processes, for each value of train.shard\n"              \
    "  - with --card: the predicted time of a step, and the ten kinds of launches that take longest\n"       \
    "The time comes from a model of the card, not from measurements. 'weft plan --card list' shows the\n"    \
    "cards; a JSON file can describe another one.\n"                                                         \
    "The data are read if they exist. They are needed if model.vocab does not give the number of tokens.\n"  \
    "\n"                                                                                                     \
    "  weft plan gpt.yaml --device cuda --set train.batch=64 --set train.precision=bf16\n"                   \
    "  weft plan gpt.yaml --card h200\n"                                                                     \
    "  weft plan gpt.yaml --card h200 --ranks 8,64 --network 50\n"
#define weft__help_profile                                                                                   \
    "Trains as 'weft train' does, but without a run folder. Prints the time of a step by kernel and by\n"    \
    "stage. Every command is timed and none overlap, so a step takes somewhat longer than in training.\n"    \
    "The bound is the least time that the peaks of this machine allow. The peaks are measured after the\n"   \
    "warm-up: f32 operations with a large matmul, bytes by changing as much memory as is in use.\n"          \
    "A kernel that finds its operands in a cache can exceed 100 %.\n"                                        \
    "ui.perfetto.dev opens the trace.\n"                                                                     \
    "\n"                                                                                                     \
    "  weft profile gpt.yaml --steps 50 --trace trace.json\n"
#define weft__help_verify                                                                                    \
    "Computes the loss and the gradients of the first step on both devices. Names the first node whose\n"    \
    "values differ by more than its dtype allows; the exit code is then 1. All nodes stay in memory, so\n"   \
    "choose a small train.batch. Then the losses of whole steps are compared.\n"                             \
    "\n"                                                                                                     \
    "  weft verify gpt.yaml --devices cpu,interp --set train.batch=2\n"                                      \
    "  weft verify gpt.yaml --devices cpu   # with and without fusion\n"
#define weft__help_bench                                                                                     \
    "'weft bench list' shows the values of WORKLOAD. Times are those of whole training steps; the data\n"    \
    "are already in memory. Without --data, data of the same shape are generated.\n"                         \
    "\n"                                                                                                     \
    "  weft bench chargpt_small --json\n"

#endif
