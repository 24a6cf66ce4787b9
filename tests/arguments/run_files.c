/* Makes run folders as `weft train` writes them: of a linear model, of a cnn and of an lstm. Must not know:
 * which function is called with it. Read next: values.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arguments/values.h"
#include "train/model/model.h"

static void write_run(const char *folder, const char *yaml, const weft__dataset *dataset) {
    weft_context *ctx = good_context();
    weft__config config;
    weft__model model;
    weft_entry *weights;
    size_t count;
    char hash[17], path[64];
    weft__config_init(&config);
    MUST(weft__config_parse(&config, yaml, strlen(yaml), "config.yaml"));
    MUST(weft__config_resolve(&config));
    MUST(weft__config_hash(ctx, &config, hash));
    MUST(weft__model_build(ctx, &config, dataset, NULL, &model));
    MUST(weft_module_entries(model.module, &weights, &count));
    MUST(weft_make_folder(ctx, folder));
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    MUST(weft_write_file(ctx, path, yaml, strlen(yaml)));
    MUST(weft__dataset_save(dataset, folder));
    const weft_checkpoint_state state = {.step = 1, .config_hash = hash};
    MUST(weft_checkpoint_write(ctx, folder, &state, weights, count, NULL, 0));
    weft_entries_free(ctx, weights, count);
    weft_module_free(model.module);
    weft__config_free(&config);
}

void good_run_files(void) {
    char names[2][2] = {"a", "b"};
    weft__column columns[2] = {{.name = names[0]}, {.name = names[1]}};
    const weft__dataset table = {.task = WEFT__TASK_REGRESSION,
                                 .source = &weft__data_csv,
                                 .features = 2,
                                 .outputs = 1,
                                 .table = {.kinds = {.list = columns, .count = 2}}};
    const weft__dataset images = {.task = WEFT__TASK_CLASSIFICATION,
                                  .source = &weft__data_cifar10,
                                  .features = 64,
                                  .outputs = 2,
                                  .scaling = {.factor = 1.0 / 255},
                                  .image = {1, 8, 8}};
    const weft__dataset text = {
        .task = WEFT__TASK_LANGUAGE_MODEL,
        .source = &weft__data_text,
        .tokens = {.tokenizer = good_tokenizer(),
                   .vocabulary = (int64_t)weft_tokenizer_vocabulary(good_tokenizer())}};
    write_run("trained", "model:\n  type: linear\ndata:\n  path: data.csv\n", &table);
    write_run("pixels", "model:\n  type: cnn\ndata:\n  source: cifar10\n  path: data.bin\n", &images);
    write_run("spoken", "model:\n  type: lstm\n  width: 8\ndata:\n  path: text.txt\n", &text);
}
