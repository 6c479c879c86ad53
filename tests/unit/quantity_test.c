/* The numbers are what k8s.io/apimachinery v0.34.4 gives. */
#include "kube/kube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct vector {
    const char *text;
    int64_t milli, value;
};

static const struct vector accepted[] = {
    {"0", 0, 0},
    {"00", 0, 0},
    {"-0", 0, 0},
    {"+0", 0, 0},
    {"1", 1000, 1},
    {"-1", -1000, -1},
    {"+1", 1000, 1},
    {"2", 2000, 2},
    {"10", 10000, 10},
    {"100", 100000, 100},
    {"1000", 1000000, 1000},
    {"1500", 1500000, 1500},
    {"0.1", 100, 1},
    {"0.5", 500, 1},
    {".5", 500, 1},
    {"1.", 1000, 1},
    {".", 0, 0},
    {"+", 0, 0},
    {"-", 0, 0},
    {"+.", 0, 0},
    {"-.", 0, 0},
    {"0.", 0, 0},
    {"00.00", 0, 0},
    {"1.0", 1000, 1},
    {"1.50", 1500, 2},
    {"1.500", 1500, 2},
    {"0.001", 1, 1},
    {"0.0001", 1, 1},
    {"0.0009", 1, 1},
    {"0.0000001", 1, 1},
    {"0.000000001", 1, 1},
    {"0.0000000001", 1, 1},
    {"-0.001", -1, -1},
    {"-0.0001", -1, -1},
    {"-1.5", -1500, -2},
    {"-1.0001", -1001, -2},
    {"-.5", -500, -1},
    {"+.5", 500, 1},
    {"100m", 100, 1},
    {"250m", 250, 1},
    {"1500m", 1500, 2},
    {"1m", 1, 1},
    {"0m", 0, 0},
    {"0.5m", 1, 1},
    {"1.5m", 2, 1},
    {"-1m", -1, -1},
    {"-100m", -100, -1},
    {"999m", 999, 1},
    {"1000m", 1000, 1},
    {"1001m", 1001, 2},
    {"1n", 1, 1},
    {"999n", 1, 1},
    {"1u", 1, 1},
    {"1000u", 1, 1},
    {"999u", 1, 1},
    {"1001u", 2, 1},
    {"0.1n", 1, 1},
    {"1.1n", 1, 1},
    {"0.001u", 1, 1},
    {"1k", 1000000, 1000},
    {"1.5k", 1500000, 1500},
    {"0.0001k", 100, 1},
    {"2k", 2000000, 2000},
    {"1M", 1000000000, 1000000},
    {"1.5M", 1500000000, 1500000},
    {"1G", 1000000000000, 1000000000},
    {"1T", 1000000000000000, 1000000000000},
    {"1P", 1000000000000000000, 1000000000000000},
    {"1Ki", 1024000, 1024},
    {"1.5Ki", 1536000, 1536},
    {"0.5Ki", 512000, 512},
    {"1Mi", 1048576000, 1048576},
    {"64Mi", 67108864000, 67108864},
    {"100Mi", 104857600000, 104857600},
    {"0.1Mi", 104857600, 104858},
    {"1.1Mi", 1153433600, 1153434},
    {"128974848", 128974848000, 128974848},
    {"129M", 129000000000, 129000000},
    {"123Mi", 128974848000, 128974848},
    {"1Gi", 1073741824000, 1073741824},
    {"1.5Gi", 1610612736000, 1610612736},
    {"0.3Gi", 322122547200, 322122548},
    {"2.7Gi", 2899102924800, 2899102925},
    {"1Ti", 1099511627776000, 1099511627776},
    {"1Pi", 1125899906842624000, 1125899906842624},
    {"0Ei", 0, 0},
    {"0.0000000001Ki", 1, 1},
    {"0.0009765625Ki", 1000, 1},
    {"0.0009765624Ki", 1000, 1},
    {"0.0009765626Ki", 1001, 2},
    {"0.00000095367431640625Mi", 1000, 1},
    {"0.1Ki", 102400, 103},
    {"1.23456789Gi", 1325607178061, 1325607179},
    {"-1.5Gi", -1610612736000, -1610612736},
    {"-0.5Ki", -512000, -512},
    {"1e3", 1000000, 1000},
    {"1E3", 1000000, 1000},
    {"1e+3", 1000000, 1000},
    {"1e-3", 1, 1},
    {"1e0", 1000, 1},
    {"1e-0", 1000, 1},
    {"1e1", 10000, 10},
    {"1e2", 100000, 100},
    {"1e5", 100000000, 100000},
    {"1e6", 1000000000, 1000000},
    {"1e-1", 100, 1},
    {"1e-2", 10, 1},
    {"1e-9", 1, 1},
    {"1e-10", 1, 1},
    {"1e-20", 1, 1},
    {"5e-10", 1, 1},
    {"1.5e3", 1500000, 1500},
    {"1.2345e3", 1234500, 1235},
    {"1.2345e2", 123450, 124},
    {"1e15", 1000000000000000000, 1000000000000000},
    {"9223372036854775", 9223372036854775000, 9223372036854775},
    {"9223372036854775.807", INT64_MAX, 9223372036854776},
    {"9223372036854775807m", INT64_MAX, 9223372036854776},
    {"e3", 0, 0},
    {"E3", 0, 0},
    {"m", 0, 0},
    {"k", 0, 0},
    {"Ki", 0, 0},
    {"Mi", 0, 0},
    {"Gi", 0, 0},
    {"Ti", 0, 0},
    {"n", 0, 0},
    {"u", 0, 0},
    {"E", 0, 0},
    {"-m", 0, 0},
    {"+Ki", 0, 0},
    {".m", 0, 0},
    {".Ki", 0, 0},
    {"e-9", 0, 0},
    {"0e-10", 0, 0},
    {"1.k", 1000000, 1000},
    {"1.Ki", 1024000, 1024},
    {"1.m", 1, 1},
    {"01", 1000, 1},
    {"007", 7000, 7},
    {"0100m", 100, 1},
    {"-01.50", -1500, -2},
    {"0000000000000000000001", 1000, 1},
    {"0.00000000000000000001", 1, 1},
    {"0.10000000000000000000000001", 101, 1},
    {"1.00000000000000000000000000000", 1000, 1},
    {"1.00000000000000000000000000001", 1001, 2},
    {"12345678901234567m", 12345678901234567, 12345678901235},
    {"123456789012345678m", 123456789012345678, 123456789012346},
    {"1234567890123456789m", 1234567890123456789, 1234567890123457},
    {"12345678901234567890n", 12345678901235, 12345678902},
    {"12345678901234567890u", 12345678901234568, 12345678901235},
    {"999999999999999999999n", 1000000000000000, 1000000000000},
    {"1000000000000000000000n", 1000000000000000, 1000000000000},
    {"0.999999999999999999", 1000, 1},
    {"1.000000001", 1001, 2},
    {"1.0000000001", 1001, 2},
    {"0.5e1", 5000, 5},
    {"0.5E1", 5000, 5},
    {"1e-5", 1, 1},
    {"12e6", 12000000000, 12000000},
    {"12E6", 12000000000, 12000000},
    {"12e-6", 1, 1},
    {"300M", 300000000000, 300000000},
    {"300Mi", 314572800000, 314572800},
    {"1000Ki", 1024000000, 1024000},
    {"1024Ki", 1048576000, 1048576},
    {"1023Ki", 1047552000, 1047552},
    {"1048576Ki", 1073741824000, 1073741824},
    {"2000m", 2000, 2},
    {"2100m", 2100, 3},
    {"33.3m", 34, 1},
    {"33.3", 33300, 34},
    {"3.3k", 3300000, 3300},
    {"0.1k", 100000, 100},
    {"0.1m", 1, 1},
    {"0.0", 0, 0},
    {"-0.0", 0, 0},
    {"-0m", 0, 0},
    {"-0Ki", 0, 0}};

/* Kubernetes parses these too, but its MilliValue or Value wraps around, gives 0, or rounds a tiny
 * negative number to a positive one; the exact value, held to an int64, is computed from AsDec().
 */
static const struct vector saturated[] = {{"1E", INT64_MAX, 1000000000000000000},
                                          {"9E", INT64_MAX, 9000000000000000000},
                                          {"10E", INT64_MAX, INT64_MAX},
                                          {"9.3E", INT64_MAX, INT64_MAX},
                                          {"1Ei", INT64_MAX, 1152921504606846976},
                                          {"7Ei", INT64_MAX, 8070450532247928832},
                                          {"7.9Ei", INT64_MAX, 9108079886394091111},
                                          {"7.99999999999999999999Ei", INT64_MAX, INT64_MAX},
                                          {"8Ei", INT64_MAX, INT64_MAX},
                                          {"9Ei", INT64_MAX, INT64_MAX},
                                          {"16Ei", INT64_MAX, INT64_MAX},
                                          {"-8Ei", -INT64_MAX, -INT64_MAX},
                                          {"-7Ei", -INT64_MAX, -8070450532247928832},
                                          {"-9Ei", -INT64_MAX, -INT64_MAX},
                                          {"-1e-10", -1, -1},
                                          {"1e16", INT64_MAX, 10000000000000000},
                                          {"1e18", INT64_MAX, 1000000000000000000},
                                          {"1e19", INT64_MAX, INT64_MAX},
                                          {"1e30", INT64_MAX, INT64_MAX},
                                          {"-1e30", INT64_MIN, INT64_MIN},
                                          {"1e100", INT64_MAX, INT64_MAX},
                                          {"9e18", INT64_MAX, 9000000000000000000},
                                          {"9.2e18", INT64_MAX, 9200000000000000000},
                                          {"9223372036854775807", INT64_MAX, INT64_MAX},
                                          {"9223372036854775808", INT64_MAX, INT64_MAX},
                                          {"-9223372036854775807", INT64_MIN, -INT64_MAX},
                                          {"-9223372036854775808", INT64_MIN, INT64_MIN},
                                          {"-9223372036854775809", INT64_MIN, INT64_MIN},
                                          {"9223372036854776", INT64_MAX, 9223372036854776},
                                          {"9223372036854775.808", INT64_MAX, 9223372036854776},
                                          {"9223372036854775808m", INT64_MAX, 9223372036854776},
                                          {"92233720368547758070", INT64_MAX, INT64_MAX},
                                          {"18446744073709551616", INT64_MAX, INT64_MAX},
                                          {"18446744073709551615", INT64_MAX, INT64_MAX},
                                          {"123456789012345678901234567890", INT64_MAX, INT64_MAX},
                                          {"12345678901234567890m", INT64_MAX, 12345678901234568},
                                          {"999999999999999999", INT64_MAX, 999999999999999999},
                                          {"5E", INT64_MAX, 5000000000000000000}};

static const char *const refused[] = {"",
                                      "..",
                                      "1..",
                                      "1.2.3",
                                      "1K",
                                      "1ki",
                                      "1KI",
                                      "1kI",
                                      "1e",
                                      "1e+",
                                      "1E+",
                                      "1E-",
                                      "1e3m",
                                      "1m3",
                                      "1em",
                                      "Pi",
                                      "Ei",
                                      "i",
                                      "e",
                                      "+Pi",
                                      ".Ei",
                                      "e-10",
                                      ".e-10",
                                      "-e-10",
                                      "1i",
                                      "1mi",
                                      "1ni",
                                      "1Mi3",
                                      "1Ki5",
                                      "1 Mi",
                                      " 1",
                                      "1 ",
                                      "1\t",
                                      "\t1",
                                      "0x10",
                                      "1_000",
                                      "1,5",
                                      "1,000",
                                      "abc",
                                      "a1",
                                      "1a",
                                      "--1",
                                      "+-1",
                                      "-+1",
                                      "++1",
                                      "1-",
                                      "1+",
                                      "1-1",
                                      "1+1",
                                      "1k-3",
                                      "1.5.5Ki",
                                      "5Ee",
                                      "5e5e5",
                                      "1e9223372036854775808",
                                      "1e-9223372036854775809",
                                      "1e99999999999999999999",
                                      "\342\210\236",
                                      "\357\274\221",
                                      "1\302\265",
                                      "1\302\265m",
                                      "nan",
                                      "inf",
                                      "1f",
                                      "0b1",
                                      "1P5",
                                      "1T5",
                                      "1EE",
                                      "1Eii"};

struct printed {
    int64_t number;
    const char *cpu, *memory;
};

static const struct printed printed[] = {
    {0, "0", "0"},
    {1, "1m", "1"},
    {-1, "-1m", "-1"},
    {10, "10m", "10"},
    {100, "100m", "100"},
    {250, "250m", "250"},
    {-500, "-500m", "-500"},
    {999, "999m", "999"},
    {1000, "1", "1k"},
    {1001, "1001m", "1001"},
    {1023, "1023m", "1023"},
    {1024, "1024m", "1Ki"},
    {1025, "1025m", "1025"},
    {1500, "1500m", "1500"},
    {-1000, "-1", "-1k"},
    {-1023, "-1023m", "-1023"},
    {-1024, "-1024m", "-1Ki"},
    {-1025, "-1025m", "-1025"},
    {1536, "1536m", "1536"},
    {2048, "2048m", "2Ki"},
    {10000, "10", "10000"},
    {100000, "100", "100000"},
    {1000000, "1k", "1000000"},
    {1048576, "1048576m", "1Mi"},
    {1048577, "1048577m", "1048577"},
    {67108864, "67108864m", "64Mi"},
    {123456789, "123456789m", "123456789"},
    {1000000000, "1M", "1000000000"},
    {1073741824, "1073741824m", "1Gi"},
    {1610612736, "1610612736m", "1536Mi"},
    {1099511627776, "1099511627776m", "1Ti"},
    {1125899906842624, "1125899906842624m", "1Pi"},
    {1000000000000000000, "1P", "976562500000000Ki"},
    {1152921504606846976, "1152921504606846976m", "1Ei"},
    {5000000000000000000, "5P", "4882812500000000Ki"},
    {9000000000000000000, "9P", "8789062500000000Ki"},
    {9223372036854774784, "9223372036854774784m", "9007199254740991Ki"},
    {INT64_MAX, "9223372036854775807m", "9223372036854775807"},
    {-INT64_MAX, "-9223372036854775807m", "-9223372036854775807"},
    {INT64_MIN, "-9223372036854775808m", "-9223372036854775808"}};

static void check(const struct vector *v)
{
    struct error err = {0};
    int64_t milli = 0, value = 0;
    if (quantity_parse_milli(v->text, &milli, &err) < 0 ||
        quantity_parse_value(v->text, &value, &err) < 0)
        fail_msg("\"%s\": %s", v->text, err.message);
    if (milli != v->milli || value != v->value)
        fail_msg("\"%s\": got %lld and %lld, expected %lld and %lld", v->text, (long long)milli,
                 (long long)value, (long long)v->milli, (long long)v->value);
    assert_int_equal(err.code, ERROR_NONE);
}

static void test_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(accepted); i++)
        check(&accepted[i]);
}

static void test_saturated(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(saturated); i++)
        check(&saturated[i]);
}

/* Exponents for which Kubernetes' arithmetic on int32 wraps around, or never ends. */
static void test_huge_exponents(void **state)
{
    (void)state;
    static const struct vector huge[] = {
        {"1e2147483648", INT64_MAX, INT64_MAX},
        {"-1e9223372036854775807", INT64_MIN, INT64_MIN},
        {"0e9223372036854775807", 0, 0},
        {"1e-9223372036854775808", 1, 1},
        {"-1e-2147483649", -1, -1},
        {"0e-2147483649", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(huge); i++)
        check(&huge[i]);
}

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct error err = {0};
        int64_t out = 42;
        if (quantity_parse_milli(refused[i], &out, &err) == 0 ||
            quantity_parse_value(refused[i], &out, &err) == 0)
            fail_msg("\"%s\" was accepted", refused[i]);
        assert_int_equal(err.code, ERROR_INVALID);
        assert_int_equal(out, 42);
    }
}

static void test_error_names_the_text(void **state)
{
    (void)state;
    struct error err = {0};
    int64_t out;
    assert_int_equal(quantity_parse_milli("64MB", &out, &err), -1);
    assert_non_null(strstr(err.message, "\"64MB\""));
}

static void test_length_is_bounded(void **state)
{
    (void)state;
    struct error err = {0};
    int64_t value = 0;
    char text[2000];
    memset(text, '9', sizeof(text));
    memcpy(text + 1024 - 2, "Ei", 3);
    assert_int_equal(quantity_parse_value(text, &value, &err), 0);
    assert_true(value == INT64_MAX);
    memset(text, '9', sizeof(text));
    text[1025] = '\0';
    assert_int_equal(quantity_parse_value(text, &value, &err), -1);
    assert_int_equal(err.code, ERROR_TOO_LARGE);
}

static void test_printed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(printed); i++) {
        char out[QUANTITY_SIZE];
        quantity_print_cpu(printed[i].number, out);
        assert_string_equal(out, printed[i].cpu);
        quantity_print_memory(printed[i].number, out);
        assert_string_equal(out, printed[i].memory);
    }
}

static void test_print_then_parse(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u; /* xorshift */
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        int64_t number = (int64_t)x >> (i % 64), back = 0;
        struct error err;
        char out[QUANTITY_SIZE];
        quantity_print_cpu(number, out);
        assert_int_equal(quantity_parse_milli(out, &back, &err), 0);
        assert_true(back == number);
        quantity_print_memory(number, out);
        assert_int_equal(quantity_parse_value(out, &back, &err), 0);
        assert_true(back == number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_saturated),
        cmocka_unit_test(test_huge_exponents),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_error_names_the_text),
        cmocka_unit_test(test_length_is_bounded),
        cmocka_unit_test(test_printed),
        cmocka_unit_test(test_print_then_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
