/* mpactl compare: recommenders on the same simulated load. */
#include "mpactl.h"
#include "study.h"

int cmd_compare(int argc, char **argv)
{
    return study_command(STUDY_COMPARE, argc, argv, NULL, study_print);
}
