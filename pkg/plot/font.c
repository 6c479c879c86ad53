/* Letters of our own, as strokes of a pen: they can be drawn at any size, bold and turned. */
#include "canvas.h"

#include <string.h>

/* A letter tells how far the next one is, then its strokes, with spaces between them. A point is
 * two letters: x from a = 0, y from a = -4; the baseline is e. Before a point at which a curve only
 * aims stands ~. A unit is 1/24 em, the pixel of text of size 12 at two pixels a unit. */
#define EM     24.0
#define BOTTOM 4

static const char *const ascii[] = {
    "jevek ef",                                                   /* ! */
    "meveq iviq",                                                 /* " */
    "tivff ovlf cqrq bkqk",                                       /* # */
    "pms~ktht~ctcq~cnhm~mmmj~mghg~egch hwhd",                     /* $ */
    "wfv~cvcr~cnfn~inir~ivfv rn~onoj~ofrf~ufuj~unrn qvgf",        /* % */
    "sqffq~eres~eviv~lvls~lqho~cmcj~cfhf~mfpm",                   /* & */
    "hdvdq",                                                      /* ' */
    "jhw~drdmdl~dghb",                                            /* ( */
    "jcw~grgmgl~ggcb",                                            /* ) */
    "mgvgn ctkp ktcp",                                            /* * */
    "ukskg emqm",                                                 /* + */
    "iegefcc",                                                    /* , */
    "jclhl",                                                      /* - */
    "ief",                                                        /* . */
    "ihvbd",                                                      /* / */
    "phv~cvcocm~cfhf~mfmmmo~mvhv",                                /* 0 */
    "pdtivif dfnf",                                               /* 1 */
    "pcu~evhv~mvmr~moilcfmf",                                     /* 2 */
    "pcu~evgv~mvmr~mnhnfn hn~mnmj~mfgf~efcg",                     /* 3 */
    "pkfkvcknk",                                                  /* 4 */
    "plvdvdo~fphp~mpmk~mfgf~efcg",                                /* 5 */
    "plu~jviv~cvcmck~cfhf~mfmk~mphp~cpck",                        /* 6 */
    "pcvmvgf",                                                    /* 7 */
    "phn~dndr~dvhv~lvlr~lnhn~cncj~cfhf~mfmj~mnhn",                /* 8 */
    "pdg~ffgf~mfmomq~mvhv~cvcq~clhl~mlmq",                        /* 9 */
    "ief ep",                                                     /* : */
    "iep egefcc",                                                 /* ; */
    "uqsemqg",                                                    /* < */
    "uepqp ejqj",                                                 /* = */
    "uesqmeg",                                                    /* > */
    "ncu~evgv~lvlr~loin~glgj gf",                                 /* ? */
    "xoqok~oiqi~uiun~uvmv~dvdl~dcmc~pcsd om~oqlq~hqhm~hili~oiom", /* @ */
    "qbfivpf dknk",                                               /* A */
    "qdfdvjv~nvnr~nnjndn jn~onoj~ofjfdf",                         /* B */
    "rpt~nvkv~cvcocm~cfkf~nfph",                                  /* C */
    "sdfdvhv~qvqoqm~qfhfdf",                                      /* D */
    "pnvdvdfnf dnmn",                                             /* E */
    "omvdvdf dnln",                                               /* F */
    "tpt~nvkv~cvcocm~cfkf~nfqhqnln",                              /* G */
    "sdvdf pvpf dnpn",                                            /* H */
    "hdvdf",                                                      /* I */
    "jfvfj~ffbf",                                                 /* J */
    "qdvdf ovdm gopf",                                            /* K */
    "ndvdfmf",                                                    /* L */
    "vdfdvkkrvrf",                                                /* M */
    "sdfdvpfpv",                                                  /* N */
    "sjv~cvcocm~cfjf~qfqmqo~qvjv",                                /* O */
    "pdfdviv~nvnrnq~nmimdm",                                      /* P */
    "sjv~cvcocm~cfjf~qfqmqo~qvjv kipd",                           /* Q */
    "qdfdviv~nvnr~nnindn in~lnmkpf",                              /* R */
    "pmu~kvhv~cvcr~cohn~nmnj~nfhf~efcg",                          /* S */
    "obvnv hvhf",                                                 /* T */
    "sdvdl~dfjf~pfplpv",                                          /* U */
    "qbvifpv",                                                    /* V */
    "ybvgfmvsfxv",                                                /* W */
    "qcvof ovcf",                                                 /* X */
    "obvhnnv hnhf",                                               /* Y */
    "qcvovcfof",                                                  /* Z */
    "jhwdwdbhb",                                                  /* [ */
    "ibvhd",                                                      /* backslash */
    "jcwgwgbcb",                                                  /* ] */
    "uepkvqp",                                                    /* ^ */
    "mabmb",                                                      /* _ */
    "mewhs",                                                      /* ` */
    "odp~fqhq~lqlmlf llhl~clci~cfgf~lflk",                        /* a */
    "pdvdf dl~dqiq~nqnlnk~nfif~dfdk",                             /* b */
    "nlp~jqiq~cqclck~cfif~jflg",                                  /* c */
    "pmvmf ml~mqhq~cqclck~cfhf~mfmk",                             /* d */
    "pclml~mqhq~cqclck~cfif~kfmg",                                /* e */
    "iivhv~evesef bqiq",                                          /* f */
    "pml~mqhq~cqclck~cfhf~mfmk mqmf~maha~fadb",                   /* g */
    "pdvdf dl~dqiq~mqmmmf",                                       /* h */
    "hdqdf dudv",                                                 /* i */
    "hdqdd~daaa dudv",                                            /* j */
    "odvdf lqdj glmf",                                            /* k */
    "hdvdf",                                                      /* l */
    "wdqdf dl~dqhq~lqlmlf ll~lqqq~tqtmtf",                        /* m */
    "pdqdf dl~dqiq~mqmmmf",                                       /* n */
    "ohq~cqclck~cfhf~mfmkml~mqhq",                                /* o */
    "pdqda dl~dqiq~nqnlnk~nfif~dfdk",                             /* p */
    "pmqma ml~mqhq~cqclck~cfhf~mfmk",                             /* q */
    "kdqdf dl~dqjq",                                              /* r */
    "nkp~iqgq~cqcn~clgl~lkli~lfgf~efcg",                          /* s */
    "jeuei~efhfif bqiq",                                          /* t */
    "pdqdj~dfhf~mfmk mqmf",                                       /* u */
    "obqhfnq",                                                    /* v */
    "ubqffkqpftq",                                                /* w */
    "ocqmf mqcf",                                                 /* x */
    "obqhf nqhd~faca",                                            /* y */
    "ncqlqcflf",                                                  /* z */
    "plw~hwhshp~hmem~hlhihf~hblb",                                /* { */
    "iewea",                                                      /* | */
    "pew~iwisip~imlm~iliiif~ibeb",                                /* } */
    "uel~gokm~okqn",                                              /* ~ */
};

static const struct {
    uint32_t code;
    const char *glyph;
} others[] = {
    {0x00b0, "mgv~dvds~dpgp~jpjs~jvgv"},     /* ° */
    {0x00b1, "ukski enqn efqf"},             /* ± */
    {0x00b2, "kcu~dvfv~ivit~irfpcnin"},      /* ² */
    {0x00b5, "pdqda dj~dfhf~mfmk mqmf"},     /* µ */
    {0x00b7, "iem"},                         /* · */
    {0x00d7, "ufrph prfh"},                  /* × */
    {0x00f7, "uemqm kq ki"},                 /* ÷ */
    {0x03bc, "pdqda dj~dfhf~mfmk mqmf"},     /* μ */
    {0x03b1, "pnq~lfgf~cfckcl~cqgq~kqnf"},   /* α */
    {0x03c3, "pnqhq~cqclck~cfhf~mfmk~mpiq"}, /* σ */
    {0x2013, "mblll"},                       /* – */
    {0x2014, "yblxl"},                       /* — */
    {0x2019, "hevetdr"},                     /* ’ */
    {0x2026, "yef mf uf"},                   /* … */
    {0x2192, "udmrm mrrmmh"},                /* → */
    {0x2212, "uemqm"},                       /* − */
    {0x2264, "uqteoqj efqf"},                /* ≤ */
    {0x2265, "uetqoej efqf"},                /* ≥ */
};
static const char space[] = "i";
static const char unknown[] = "pcfcvmvmfcf"; /* a box */

static const char *glyph_of(uint32_t code)
{
    if (code == ' ')
        return space;
    if (code > ' ' && code < ' ' + 1 + ARRAY_LEN(ascii))
        return ascii[code - ' ' - 1];
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (others[i].code == code)
            return others[i].glyph;
    return unknown;
}

/* --- UTF-8 ----------------------------------------------------------------------------------- */
/* Bytes that belong together and what they mean. What is no UTF-8 is one byte that means nothing.
 */
static size_t next_code(const char *text, uint32_t *code)
{
    uint8_t first = (uint8_t)text[0];
    size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    *code = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        uint8_t byte = (uint8_t)text[i];
        if ((byte & 0xc0) != 0x80) {
            *code = UINT32_MAX;
            return 1;
        }
        *code = *code << 6 | (byte & 0x3fu);
    }
    return length;
}

/* --- strokes --------------------------------------------------------------------------------- */
enum { CURVE_POINTS = 8, MAX_POINTS = 256 };

struct stroke {
    struct canvas_point points[MAX_POINTS];
    size_t count;
};

static void add_curve(struct stroke *s, struct canvas_point aim, struct canvas_point end)
{
    const struct canvas_point begin = s->points[s->count - 1];
    for (int i = 1; i <= CURVE_POINTS; i++) {
        double t = i / (double)CURVE_POINTS, a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
        s->points[s->count++] = (struct canvas_point){a * begin.x + b * aim.x + c * end.x,
                                                      a * begin.y + b * aim.y + c * end.y};
    }
}

static struct canvas_point point_at(const char *code, double left)
{
    return (struct canvas_point){(left + code[0] - 'a') / EM, (code[1] - 'a' - BOTTOM) / EM};
}

/* Gives back where the stroke ends in its letter. */
static const char *read_stroke(const char *code, double left, struct stroke *s)
{
    s->count = 0;
    while (*code && *code != ' ') {
        bool curve = *code == '~';
        if (curve && s->count > 0)
            add_curve(s, point_at(code + 1, left), point_at(code + 3, left));
        else
            s->points[s->count++] = point_at(code, left);
        code += curve ? 5 : 2;
    }
    return *code == ' ' ? code + 1 : code;
}

double font_trace(const char *text,
                  void (*draw)(void *arg, const struct canvas_point *points, size_t count),
                  void *arg)
{
    struct stroke s;
    double left = 0;
    uint32_t code;
    for (; *text; text += next_code(text, &code)) {
        next_code(text, &code);
        const char *glyph = glyph_of(code), *at = glyph + 1;
        while (draw && *at) {
            at = read_stroke(at, left, &s);
            draw(arg, s.points, s.count);
        }
        left += glyph[0] - 'a';
    }
    return left / EM;
}
