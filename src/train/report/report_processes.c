/* Shows processes.json as an HTML table: how long each process of a run computed and waited. Must not know:
 * how processes exchange data. Read next: train/run/processes.c, which writes the file. */
#include <math.h>

#include "train/report/report_scores.h"

static double figure(const json_t *process, const char *key) {
    return json_number_value(json_object_get(process, key));
}

static void processes(FILE *out, const json_t *all) {
    const json_t *list = json_object_get(all, "processes");
    double longest = 0, shortest = INFINITY;
    if (!list) return;
    for (size_t i = 0; i < json_array_size(list); i++) {
        longest = fmax(longest, figure(json_array_get(list, i), "computing"));
        shortest = fmin(shortest, figure(json_array_get(list, i), "computing"));
    }
    fprintf(out, "<h2>Processes</h2>\n<p>");
    weft__report_text(out, all, "engine");
    fprintf(out,
            ". A process that computes longer than the others makes them wait: the slowest of these needs "
            "%.1f %% more "
            "time than the fastest.</p>\n<div class=\"wide\"><table><tr><th>rank</th><th>machine</th><th "
            "class=\"n\">computing</th><th></th><th class=\"n\">waiting for an exchange</th><th "
            "class=\"n\">exchanging while computing</th><th class=\"n\">memory at the peak</th></tr>\n",
            shortest > 0 ? 100 * (longest / shortest - 1) : 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *process = json_array_get(list, i);
        fprintf(out, "<tr><td>%zu</td><td>", i);
        weft__report_text(out, process, "machine");
        fprintf(out,
                "</td><td class=\"n\">%.3f s</td><td class=\"share\"><div class=\"bar\" "
                "style=\"width:%.1f%%\"></div></td><td class=\"n\">%.3f s</td><td class=\"n\">%.3f s</td><td "
                "class=\"n\">%.1f MB</td></tr>\n",
                figure(process, "computing"), longest > 0 ? 100 * figure(process, "computing") / longest : 0,
                figure(process, "exchanging"), figure(process, "hidden"),
                figure(process, "memory_peak") / (1 << 20));
    }
    fprintf(out, "</table></div>\n");
}

weft_status weft__report_processes(FILE *out, const char *dir) {
    return weft__report_json(out, dir, "processes.json", processes, ": the processes are not shown");
}
