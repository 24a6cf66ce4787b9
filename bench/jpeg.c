/* How fast one thread reads a JPEG as training does, scaling included, compared with libjpeg-turbo when it
 * only decodes the whole image. `make bench-jpeg` builds and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <turbojpeg.h>

#include "data/image_file.h"

static void need(bool holds) {
    if (holds) return;
    fprintf(stderr, "bench_jpeg: a call failed: %s\n", weft_last_error(NULL));
    exit(1);
}

/* Processor time of this thread, so that other programs do not count. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Makes a JPEG with edges, areas and some noise, about a byte for every four pixels, like a photo. */
static unsigned char *make_photo(int rows, int columns, unsigned long *size) {
    unsigned char *pixels = malloc((size_t)rows * (size_t)columns * 3), *jpeg = NULL;
    uint32_t noise = 1;
    need(pixels != NULL);
    for (int i = 0; i < rows * columns; i++) {
        const int y = i / columns, x = i % columns;
        noise = noise * 1664525U + 1013904223U;
        const int edge = (x / 37 + y / 53) % 3 * 40, grain = (int)(noise >> 28);
        pixels[3 * i] = (unsigned char)(edge + x * 100 / columns + grain);
        pixels[3 * i + 1] = (unsigned char)(edge + y * 100 / rows + grain);
        pixels[3 * i + 2] = (unsigned char)(200 - edge + grain);
    }
    tjhandle handle = tjInitCompress();
    need(tjCompress2(handle, pixels, columns, 0, rows, TJPF_RGB, &jpeg, size, TJSAMP_420, 85, 0) == 0);
    tjDestroy(handle);
    free(pixels);
    return jpeg;
}

static double libjpeg_seconds(const unsigned char *jpeg, unsigned long size, int rows, int columns,
                              int runs) {
    unsigned char *pixels = malloc((size_t)rows * (size_t)columns * 3);
    need(pixels != NULL);
    const double begin = seconds();
    for (int i = 0; i < runs; i++) {
        tjhandle handle = tjInitDecompress();
        need(tjDecompress2(handle, jpeg, size, pixels, columns, 0, rows, TJPF_RGB, TJFLAG_ACCURATEDCT) == 0);
        tjDestroy(handle);
    }
    free(pixels);
    return (seconds() - begin) / runs;
}

static double weft_seconds(const unsigned char *jpeg, unsigned long size, int side, int runs) {
    uint8_t *planes = malloc(3 * (size_t)side * (size_t)side);
    need(planes != NULL);
    const double begin = seconds();
    for (int i = 0; i < runs; i++) {
        weft__image image;
        need(weft__image_decode(NULL, jpeg, size, "photo",
                                &(weft_image_folder_options){.channels = 3, .rows = side, .columns = side},
                                &image) == WEFT_OK);
        need(weft__image_fit(NULL, &image, side, side, planes) == WEFT_OK);
        weft__image_free(NULL, &image);
    }
    free(planes);
    return (seconds() - begin) / runs;
}

int main(void) {
    static const struct {
        int rows, columns, side, runs;
    } sizes[] = {{2400, 3200, 224, 2},
                 {1200, 1600, 224, 4},
                 {500, 375, 64, 30},
                 {375, 500, 224, 30},
                 {256, 256, 224, 60}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned long size = 0;
        unsigned char *jpeg = make_photo(sizes[i].rows, sizes[i].columns, &size);
        double best = 0, rate = 0;
        for (int attempt = 0; attempt < 5; attempt++) { /* the best of five: caches are shared */
            const double theirs = libjpeg_seconds(jpeg, size, sizes[i].rows, sizes[i].columns, sizes[i].runs),
                         ours = weft_seconds(jpeg, size, sizes[i].side, sizes[i].runs);
            if (theirs / ours > best) best = theirs / ours, rate = 1 / ours;
        }
        printf("%4d x %4d to %d: %.0f images/s, %.2f of libjpeg-turbo alone\n", sizes[i].rows,
               sizes[i].columns, sizes[i].side, rate, best);
        tjFree(jpeg);
    }
    return 0;
}
