/* What a shell may complete kubectl mpa with, in the form that kubectl asks plugins for: a word per
 * line, after a tab what it is, and at the end ":4" (no files) or ":0" (files will do). */
#include <stdio.h>
#include <string.h>

#include "kubectl.h"
#include "mpactl.h"

enum directive { FILES = 0, NO_FILES = 4 };
#define PATIENCE_MS 3000 /* of somebody who has pressed a key */

static void offer(const char *word, const char *about, const char *begun)
{
    if (strncmp(word, begun, strlen(begun)) == 0)
        printf("%s%s%s\n", word, about ? "\t" : "", about ? about : "");
}

static void offer_commands(const char *begun)
{
    for (const struct plugin_command *c = plugin_commands; c->name; c++)
        offer(c->name, c->summary, begun);
}

static void offer_options(const struct options_table *options, const char *begun)
{
    for (size_t i = 0; i < options->count; i++) {
        cleanup_free char *word = xasprintf("--%s", options->options[i].name);
        offer(word, options->options[i].help, begun);
    }
}

static bool is_given(const struct args_list *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

/* Names of MPAs, or of namespaces; none where the cluster does not tell. */
static void offer_objects(const struct plugin_options *o, bool namespaces, const char *begun)
{
    struct cluster c;
    struct error err = {0};
    size_t i;
    const json_t *item;
    json_t *list = NULL;
    if (cluster_open(&c, o, &err) == 0) {
        cleanup_free char *path =
            namespaces ? xstrdup("/api/v1/namespaces") : cluster_mpas_path(&c);
        list = cluster_list(&c, path, "", &err);
    }
    json_array_foreach (list, i, item)
        if (namespaces || !is_given(&o->names, view_name(item)))
            offer(view_name(item), NULL, begun);
    json_decref(list);
    cluster_close(&c);
}

static enum directive offer_value(const struct args_option *option, const struct plugin_options *o,
                                  const char *begun)
{
    if (option->words) {
        for (size_t i = 0; option->words[i]; i++)
            offer(option->words[i], NULL, begun);
        return NO_FILES;
    }
    static const char *const files[] = {"filename", "kubeconfig", "policy", "html", "json"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strcmp(option->name, files[i]) == 0)
            return FILES;
    if (strcmp(option->name, "namespace") == 0)
        offer_objects(o, true, begun);
    return NO_FILES;
}

static void offer_names(const struct plugin_command *command, const struct plugin_options *o,
                        const char *begun)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    if (command->run == plugin_completion) {
        for (size_t i = 0; i < ARRAY_LEN(shells); i++)
            offer(shells[i], NULL, begun);
    } else {
        offer_objects(o, false, begun);
    }
}

/* argv[1] is the command, the last argument what is to be completed. */
static enum directive complete(const struct plugin_command *command, int argc, char **argv)
{
    struct args_option room[PLUGIN_MAX_OPTIONS];
    const struct options_table options = plugin_table(command, room);
    struct plugin_options o = {.timeout_ms = PATIENCE_MS};
    struct error unused;
    char **kept = NULL;
    const char *begun = argv[argc - 1];
    const struct args_option *before = argc > 3 ? options_find(&options, argv[argc - 2]) : NULL;
    bool is_value = before && before->kind != ARGS_FLAG && !strchr(argv[argc - 2], '=');
    enum directive directive = NO_FILES;
    int given = argc - 2 - is_value; /* without the command's name and what is not complete */
    options_parse(&options, given, argv + 1, &o, &o.names, &kept, &unused);
    if (is_value)
        directive = offer_value(before, &o, begun);
    else if (begun[0] == '-')
        offer_options(&options, begun);
    else
        offer_names(command, &o, begun);
    options_free(kept);
    return directive;
}

int kubectl_complete(int argc, char **argv)
{
    enum directive directive = NO_FILES;
    const struct plugin_command *command = argc > 2 ? plugin_find(argv[1]) : NULL;
    if (argc == 2)
        offer_commands(argv[1]);
    else if (command)
        directive = complete(command, argc, argv);
    printf(":%d\n", directive);
    return EXIT_FINE;
}

/* --- the scripts ----------------------------------------------------------------------------- */
static const char bash_script[] =
    "# bash completion of kubectl-mpa; kubectl itself asks kubectl_complete-mpa.\n"
    "_kubectl_mpa() {\n"
    "  local line files= cur=${COMP_WORDS[COMP_CWORD]}\n"
    "  COMPREPLY=()\n"
    "  while IFS= read -r line; do\n"
    "    case $line in\n"
    "      :0) files=yes ;;\n"
    "      :*) ;;\n"
    "      *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "    esac\n"
    "  done < <(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "  [[ -z $files ]] || mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "}\n"
    "complete -F _kubectl_mpa kubectl-mpa\n";

static const char zsh_script[] =
    "#compdef kubectl-mpa\n"
    "# zsh completion of kubectl-mpa; kubectl itself asks kubectl_complete-mpa.\n"
    "_kubectl_mpa() {\n"
    "  local line files=0\n"
    "  local -a found\n"
    "  for line in \"${(@f)$(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "    case $line in\n"
    "      :0) files=1 ;;\n"
    "      :*) ;;\n"
    "      *$'\\t'*) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "      *) found+=(\"${line//:/\\\\:}\") ;;\n"
    "    esac\n"
    "  done\n"
    "  if (( files )); then _files; else _describe 'kubectl mpa' found; fi\n"
    "}\n"
    "if [[ ${funcstack[1]} == _kubectl-mpa ]]; then # as a file of fpath\n"
    "  _kubectl_mpa \"$@\"\n"
    "else\n"
    "  compdef _kubectl_mpa kubectl-mpa\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion of kubectl-mpa; kubectl itself asks kubectl_complete-mpa.\n"
    "function __kubectl_mpa_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    $words[1] __complete $words[2..-1] 2>/dev/null | string match -v -r '^:'\n"
    "end\n"
    "complete -c kubectl-mpa -f -a '(__kubectl_mpa_complete)'\n"
    "complete -c kubectl-mpa -s f -l filename -r -F\n"
    "complete -c kubectl-mpa -l kubeconfig -r -F\n";

int plugin_completion(const struct plugin_options *o)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    const char *shell = o->names.count == 1 ? o->names.items[0] : "";
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        if (strcmp(shell, scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return EXIT_FINE;
        }
    }
    mpactl_error("completion: name the shell: bash, zsh or fish");
    return EXIT_USAGE;
}
