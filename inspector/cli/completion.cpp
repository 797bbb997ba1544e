// SPDX-License-Identifier: Apache-2.0
// Completions of bash, zsh and fish.
#include <algorithm>

#include <fmt/format.h>

#include "inspector/cli/self_description.h"

namespace parallax::cli {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

// Within single quotes of bash and zsh.
std::string quoted_text(const std::string& text) { return replaced(text, "'", "'\\''"); }

// Up to the first semicolon outside parentheses, or the end of the line.
std::string short_of(const std::string& text) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    depth += (text[at] == '(') - (text[at] == ')');
    if (text[at] == '\n' || (text[at] == ';' && depth <= 0)) return text.substr(0, at);
  }
  return text;
}

// The options of the program itself, which stand before a verb.
std::vector<DescribedOption> options_of_program() {
  return {{{"-h", "--help"}, "", "options and verbs", false, false},
          {{"--version"}, "", "the version", false, false},
          {{"--manual"}, "", "the manual page", false, false},
          {{"--completion"}, "bash|zsh|fish", "completions of a shell", false, false}};
}

// ---- bash ----

// The call that offers a value; nothing where any text may stand.
std::string bash_call(const ValueChoices& choices) {
  std::string call;
  if (!choices.words.empty())
    call += fmt::format("_parallax_{} {}; ", choices.is_list ? "list" : "words", fmt::join(choices.words, " "));
  if (choices.takes_files) return call + "_parallax_files; ";
  if (!choices.endings.empty()) return call + fmt::format("_parallax_files {}; ", fmt::join(choices.endings, " "));
  return choices.takes_folders ? call + "_parallax_files /; " : call;
}

constexpr std::string_view kBashHead = R"(# Completion of parallax for bash; `parallax --completion bash` makes it.

# Files with one of the endings, or all of them; folders always.
_parallax_files() {
  local name ending
  compopt -o filenames 2>/dev/null
  while IFS= read -r name; do
    if [[ -d $name || $# -eq 0 ]]; then
      COMPREPLY+=("$name")
      continue
    fi
    for ending; do
      [[ $name == *."$ending" ]] && COMPREPLY+=("$name") && break
    done
  done < <(compgen -f -- "$cur")
}

_parallax_words() {
  local word
  for word; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
  done
}

# Words that commas join.
_parallax_list() {
  local word head=''
  [[ $cur == *,* ]] && head=${cur%,*},
  for word; do
    [[ $head$word == "$cur"* && ,$head != *,"$word",* ]] && COMPREPLY+=("$head$word")
  done
}

_parallax() {
  local line=${COMP_LINE:0:COMP_POINT} cur verb option colon index
  local -a words
  read -ra words <<<"$line"
  cur=${line##*[[:space:]]}
  [[ -n $cur ]] && unset 'words[-1]'
  verb=${words[1]}
  option=${words[-1]}
  if [[ $cur == --*=* ]]; then
    option=${cur%%=*}
    cur=${cur#*=}
  fi
  COMPREPLY=()
)";

constexpr std::string_view kBashTail = R"(
  # Bash takes a colon for the end of a word.
  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
    colon=${cur%"${cur##*:}"}
    for index in "${!COMPREPLY[@]}"; do COMPREPLY[index]=${COMPREPLY[index]#"$colon"}; done
  fi
}
complete -F _parallax parallax
)";

std::string bash_completion(std::span<const DescribedVerb> verbs) {
  std::string text(kBashHead), values, names, arguments;
  std::vector<std::string> all;
  for (const DescribedOption& option : options_of_program()) {
    all.push_back(option.names.back());
    if (!option.value.empty())
      text += fmt::format("  if [[ $option == {} ]]; then\n    {}\n  elif (( ${{#words[@]}} < 2 )); then\n",
                          option.names.back(), bash_call(choices_of(option.value)));
  }
  for (const DescribedVerb& verb : verbs) {
    all.push_back(verb.name);
    std::vector<std::string> options;
    for (const DescribedOption& option : verb.options) {
      for (const std::string& name : option.names) options.push_back(name);
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(verb.name + "/" + name);
      const bool has_name = option.value.find('=') != std::string::npos;
      values += fmt::format("    {}) {}{}: ;;\n", fmt::join(patterns, "|"), has_name ? "cur=${cur##*=}; " : "",
                            bash_call(choices_of(option.value)));
    }
    names += fmt::format("    {}) _parallax_words {} ;;\n", verb.name, fmt::join(options, " "));
    std::string call;
    for (const DescribedOption& argument : verb.arguments) call += bash_call(choices_of(argument.value));
    if (!call.empty()) arguments += fmt::format("    {}) {};;\n", verb.name, call);
  }
  text += fmt::format("    _parallax_words {}\n  else\n", fmt::join(all, " "));
  text += "    local is_value=yes\n    case $verb/$option in\n" + values + "    *) is_value= ;;\n    esac\n";
  text += "    if [[ -z $is_value && $cur == -* ]]; then\n    case $verb in\n" + names + "    esac\n";
  text += "    elif [[ -z $is_value ]]; then\n    case $verb in\n" + arguments + "    esac\n    fi\n  fi\n";
  return text + std::string(kBashTail);
}

// ---- zsh ----

std::string zsh_text(const std::string& text) {
  std::string safe = quoted_text(short_of(text));
  for (const std::string_view special : {"[", "]", ":"}) safe = replaced(safe, special, fmt::format("\\{}", special));
  return safe;
}

// The action of _arguments for a value.
std::string zsh_action(const std::string& value) {
  const ValueChoices choices = choices_of(value);
  const bool has_name = value.find('=') != std::string::npos;
  if (choices.is_list) return "_parallax_executors";
  if (!choices.words.empty()) {
    std::vector<std::string> words;
    for (const std::string& word : choices.words) words.push_back(replaced(word, ":", "\\:"));
    return fmt::format("({})", fmt::join(words, " "));
  }
  const char* files = has_name ? "_parallax_named" : "_files";
  if (choices.takes_files) return files;
  if (!choices.endings.empty()) return fmt::format("{} -g \"*.({})(-.)\"", files, fmt::join(choices.endings, "|"));
  return choices.takes_folders ? "_files -/" : " ";
}

// The specifications of an option for _arguments: one for each of its names.
std::string zsh_option(const DescribedOption& option) {
  std::string text, others;
  if (option.names.size() > 1 && !option.may_repeat) others = fmt::format("({})", fmt::join(option.names, " "));
  if (option.names.back() == "--help") others = "(- *)";
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--") && !option.value.empty();
    text += fmt::format(" \\\n      '{}{}{}{}[{}]", others, option.may_repeat ? "*" : "", name, is_long ? "=" : "",
                        zsh_text(option.description));
    if (!option.value.empty()) text += fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option.value));
    text += "'";
  }
  return text;
}

std::string zsh_completion(std::span<const DescribedVerb> verbs) {
  std::string text =
      "#compdef parallax\n# Completion of parallax for zsh; `parallax --completion zsh` makes it.\n\n"
      "_parallax_executor() { compadd \"$@\" -- " +
      fmt::format("{}", fmt::join(choices_of("EXEC").words, " ")) +
      " }\n_parallax_executors() { _sequence -s , -n 2 _parallax_executor }\n"
      "_parallax_named() { compset -P '*='; _files \"$@\" }\n\n_parallax() {\n"
      "  local curcontext=\"$curcontext\" state line\n  local -a verbs\n  _arguments -C";
  for (const DescribedOption& option : options_of_program()) text += zsh_option(option);
  text += " \\\n      '1:verb:->verbs' '*::argument:->arguments'\n  case $state in\n  verbs)\n    verbs=(\n";
  for (const DescribedVerb& verb : verbs)
    text += fmt::format("      '{}:{}'\n", verb.name, replaced(quoted_text(short_of(verb.summary)), ":", "\\:"));
  text += "    )\n    _describe verb verbs ;;\n  arguments)\n    case $words[1] in\n";
  for (const DescribedVerb& verb : verbs) {
    text += fmt::format("    {}) _arguments", verb.name);
    for (const DescribedOption& option : verb.options) text += zsh_option(option);
    for (const DescribedOption& argument : verb.arguments)
      text += fmt::format(" \\\n      '{}:{}:{}'", argument.may_repeat ? "*" : "", zsh_text(argument.value),
                          zsh_action(argument.value));
    text += " ;;\n";
  }
  return text + "    esac ;;\n  esac\n}\n\n_parallax \"$@\"\n";
}

// ---- fish ----

std::string fish_text(const std::string& text) { return replaced(replaced(short_of(text), "\\", "\\\\"), "'", "\\'"); }

// The command that offers a value; nothing where any text or any file may stand.
std::string fish_call(const ValueChoices& choices) {
  std::vector<std::string> offered;
  if (!choices.words.empty())
    offered.push_back(choices.is_list ? fmt::format("(__parallax_list {})", fmt::join(choices.words, " "))
                                      : fmt::format("{}", fmt::join(choices.words, " ")));
  if (!choices.endings.empty() && !choices.takes_files)
    offered.push_back(fmt::format("(__parallax_files {})", fmt::join(choices.endings, " ")));
  if (choices.takes_folders && choices.endings.empty() && !choices.takes_files)
    offered.emplace_back("(__parallax_files)");
  return offered.empty() ? "" : fmt::format(" -a '{}'", fmt::join(offered, " "));
}

std::string fish_option(const DescribedOption& option) {
  std::string text;
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) {
    const ValueChoices choices = choices_of(option.value);
    text += (choices.takes_files ? " -r -F" : " -x") + fish_call(choices);
  }
  return text + fmt::format(" -d '{}'\n", fish_text(option.description));
}

constexpr std::string_view kFishHead = R"(# Completion of parallax for fish; `parallax --completion fish` makes it.

# Is this the verb of the line; without an argument: is there none yet.
function __parallax_is
  set -l words (commandline -opc)
  set -l verb $words[2]
  if set -q argv[1]
    test "$verb" = $argv[1]
  else
    string match -qr -- '^(-.*)?$' "$verb"
  end
end

# The word at the cursor; of --option=word that word.
function __parallax_word
  string replace -r -- '^--[^=]*=' '' (commandline -ct)
end

# Words that commas join.
function __parallax_list
  set -l head (string replace -rf '^(.*,).*$' '$1' -- (__parallax_word))
  for word in $argv
    string match -q -- "*,$word,*" ",$head"; or echo "$head$word"
  end
end

# Files with one of the endings; folders always.
function __parallax_files
  set -l files (complete -C "__fish_command_without_completions "(__parallax_word) | string replace -r '\t.*' '')
  set -l endings (string join '|' -- $argv)
  string match -r -- '^.*(?:/|\.(?:'"$endings"'))$' $files
end

complete -c parallax -f
)";

std::string fish_completion(std::span<const DescribedVerb> verbs) {
  std::string text(kFishHead);
  for (const DescribedOption& option : options_of_program())
    text += "complete -c parallax -n __parallax_is" + fish_option(option);
  for (const DescribedVerb& verb : verbs) {
    text += fmt::format("complete -c parallax -n __parallax_is -a {} -d '{}'\n", verb.name, fish_text(verb.summary));
    const std::string where = fmt::format("complete -c parallax -n '__parallax_is {}'", verb.name);
    for (const DescribedOption& option : verb.options) text += where + fish_option(option);
    for (const DescribedOption& argument : verb.arguments) {
      const ValueChoices choices = choices_of(argument.value);
      if (choices.takes_files) text += where + " -F\n";
      if (const std::string call = fish_call(choices); !call.empty()) text += where + call + "\n";
    }
  }
  return text;
}

}  // namespace

Result<std::string> completion(std::string_view shell, std::span<const DescribedVerb> verbs) {
  if (shell == "bash") return bash_completion(verbs);
  if (shell == "zsh") return zsh_completion(verbs);
  if (shell == "fish") return fish_completion(verbs);
  return usage_error(fmt::format("--completion '{}': it must be bash, zsh or fish", shell));
}

}  // namespace parallax::cli
