#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"

enum { LONGEST_WORD = 15, NEGATION_REACH = 3 };

struct entry {
    const char *word;
    double weight;
};

/* Sorted for bsearch. */
static const struct entry lexicon[] = {
    {"amazing", 2.8},   {"angry", -2.3},        {"annoying", -1.7}, {"awful", -2.0},
    {"bad", -2.5},      {"beautiful", 2.9},     {"best", 3.2},      {"boring", -1.3},
    {"broken", -2.1},   {"calm", 1.3},          {"clean", 1.7},     {"comfortable", 1.5},
    {"crash", -1.7},    {"cruel", -2.8},        {"delicious", 2.7}, {"delight", 2.9},
    {"dirty", -1.9},    {"disappointed", -2.1}, {"enjoy", 2.2},     {"excellent", 2.7},
    {"fail", -2.5},     {"fine", 0.8},          {"friendly", 2.2},  {"good", 1.9},
    {"great", 3.1},     {"happy", 2.7},         {"hate", -2.7},     {"helpful", 1.8},
    {"horrible", -2.5}, {"kind", 2.4},          {"late", -0.8},     {"like", 1.5},
    {"lost", -1.3},     {"love", 3.2},          {"nice", 1.8},      {"noisy", -0.7},
    {"perfect", 2.7},   {"poor", -2.1},         {"problem", -1.7},  {"quick", 0.9},
    {"reliable", 1.9},  {"rude", -2.0},         {"sad", -2.1},      {"slow", -1.2},
    {"smile", 1.5},     {"terrible", -2.1},     {"ugly", -2.3},     {"useless", -1.8},
    {"warm", 0.9},      {"waste", -1.8},        {"wonderful", 2.7}, {"worst", -3.1},
    {"wrong", -2.1},
};

static const struct entry boosters[] = {
    {"extremely", 1.6}, {"quite", 1.2}, {"really", 1.3}, {"slightly", 0.6}, {"very", 1.4},
};

static const struct entry negations[] = {
    {"cannot", 0}, {"hardly", 0}, {"never", 0}, {"no", 0}, {"not", 0}, {"without", 0},
};

static int compare_word(const void *word, const void *entry)
{
    return strcmp(word, ((const struct entry *)entry)->word);
}

#define LOOK_UP(table, word)                                                                       \
    ((const struct entry *)bsearch(word, table, sizeof(table) / sizeof(*(table)),                  \
                                   sizeof(*(table)), compare_word))

/* Words longer than any in the tables are cut, which cannot make them match. */
static const char *next_word(const char *text, char word[LONGEST_WORD + 1])
{
    size_t length = 0;

    while (*text != '\0' && !isalpha((unsigned char)*text))
        text++;
    for (; isalpha((unsigned char)*text); text++) {
        if (length < LONGEST_WORD)
            word[length++] = (char)tolower((unsigned char)*text);
    }
    word[length] = '\0';
    return text;
}

double sentiment(const char *text)
{
    /* Spreads sums of ordinary texts over the range from -1 to 1. */
    const double spread = 15;
    char word[LONGEST_WORD + 1];
    double sum = 0, boost = 1;
    int words_since_negation = NEGATION_REACH;

    while (text = next_word(text, word), word[0] != '\0') {
        const struct entry *found = LOOK_UP(boosters, word);
        if (found != NULL) {
            boost = found->weight;
            continue;
        }
        found = LOOK_UP(lexicon, word);
        if (found != NULL)
            sum += found->weight * boost * (words_since_negation < NEGATION_REACH ? -0.75 : 1);
        boost = 1;
        words_since_negation = LOOK_UP(negations, word) != NULL ? 0 : words_since_negation + 1;
    }
    return sum / sqrt(sum * sum + spread);
}
