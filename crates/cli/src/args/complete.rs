//! Completions for shells, from the table.
//!
//! The scripts contain the names of commands and flags. They get the names of agents and sessions
//! from `attache __complete agents|sessions`.

use std::fmt::Write;

use super::flags::{Flag, Hint};
use super::table::{Command, TOP, global_flags};

/// The shells there are completions for.
pub(crate) const SHELLS: &[&str] = &["bash", "zsh", "fish"];

/// The script for one of [`SHELLS`].
pub(crate) fn completions(shell: &str) -> String {
    match shell {
        "fish" => fish(),
        // zsh runs the same script by its own emulation of bash's completions.
        "zsh" => format!("#compdef attache\nautoload -U +X bashcompinit && bashcompinit\n{}", bash()),
        _ => bash(),
    }
}

/// All commands with the words that lead to them: `("sessions new", …)`.
fn paths() -> Vec<(String, &'static Command)> {
    let mut all = vec![(String::new(), &TOP)];
    for command in TOP.commands {
        all.push((command.name.to_owned(), command));
        all.extend(command.commands.iter().map(|inner| (format!("{} {}", command.name, inner.name), inner)));
    }
    all
}

fn names(flags: impl Iterator<Item = &'static Flag>) -> String {
    let mut text = String::new();
    for flag in flags {
        if let Some(short) = flag.short {
            let _ = write!(text, "-{short} ");
        }
        let _ = write!(text, "--{} ", flag.name);
    }
    text.trim_end().to_owned()
}

/// The completion of a value, in bash.
fn bash_hint(hint: Hint) -> String {
    match hint {
        Hint::Text | Hint::UpTo(_) => "COMPREPLY=()".to_owned(),
        Hint::File => "COMPREPLY=($(compgen -f -- \"$cur\"))".to_owned(),
        Hint::Dir => "COMPREPLY=($(compgen -d -- \"$cur\"))".to_owned(),
        Hint::Command => "COMPREPLY=($(compgen -c -- \"$cur\"))".to_owned(),
        Hint::Agent => "COMPREPLY=($(compgen -W \"$(attache __complete agents)\" -- \"$cur\"))".to_owned(),
        Hint::Session => {
            "COMPREPLY=($(compgen -W \"$(attache __complete sessions)\" -- \"$cur\"))".to_owned()
        }
        Hint::OneOf(words) => format!("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))", words.join(" ")),
    }
}

fn bash() -> String {
    let mut values = String::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut takes_value = String::new();
    let own = TOP
        .commands
        .iter()
        .flat_map(|command| command.own_flags().chain(command.commands.iter().flat_map(Command::own_flags)));
    for flag in global_flags().chain(TOP.own_flags()).chain(own) {
        if flag.value.is_none() || seen.contains(&flag.name) {
            continue;
        }
        seen.push(flag.name);
        let pattern = match flag.short {
            Some(short) => format!("-{short}|--{}", flag.name),
            None => format!("--{}", flag.name),
        };
        let _ = writeln!(values, "        {pattern}) {}; return ;;", bash_hint(flag.hint));
        let _ = write!(takes_value, "{}{pattern}", if takes_value.is_empty() { "" } else { "|" });
    }
    let mut cases = String::new();
    for (path, command) in paths() {
        let flags = names(command.own_flags().chain(global_flags()));
        let mut words: Vec<&str> = command.commands.iter().map(|command| command.name).collect();
        let word = command.positionals.first().map(|word| word.hint);
        let mut extra = String::new();
        match word {
            Some(Hint::OneOf(choices)) => words.extend(choices),
            Some(Hint::Session) => extra.push_str(" $(attache __complete sessions)"),
            Some(Hint::File) => {
                let _ = writeln!(
                    cases,
                    "        \"{path}\") if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"{flags}\" -- \"$cur\")); else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;"
                );
                continue;
            }
            _ => {}
        }
        if path.is_empty() {
            // After an agent no second one follows.
            extra.push_str(" $([[ -n $agent ]] || attache __complete agents)");
        }
        let words = words.join(" ");
        let _ = writeln!(
            cases,
            "        \"{path}\") if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"{flags}\" -- \"$cur\")); else COMPREPLY=($(compgen -W \"{words}{extra}\" -- \"$cur\")); fi ;;"
        );
    }
    let commands: Vec<String> = paths().into_iter().map(|(path, _)| format!("\"{path}\"")).collect();
    let commands = commands.join("|");
    format!(
        r#"_attache() {{
    local cur prev path word skip next agent
    cur="${{COMP_WORDS[COMP_CWORD]}}"
    prev="${{COMP_WORDS[COMP_CWORD-1]}}"
    COMPREPLY=()
    case "$prev" in
{values}    esac
    # The command: the words before the cursor that are neither flags, nor their values, nor an agent.
    path=""
    skip=""
    agent=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        if [[ -n $skip ]]; then skip=""; continue; fi
        case "$word" in
        {takes_value}) skip=1; continue ;;
        -*) continue ;;
        esac
        next="${{path:+$path }}$word"
        case "$next" in
        {commands}) path="$next" ;;
        *) [[ -n $path ]] || agent="$word" ;;
        esac
    done
    case "$path" in
{cases}    esac
}}
complete -o default -F _attache attache
"#
    )
}

fn fish() -> String {
    let mut text = String::from("# completions for attache\ncomplete -c attache -f\n");
    let commands: Vec<&str> = TOP.commands.iter().map(|command| command.name).collect();
    let none = format!("not __fish_seen_subcommand_from {}", commands.join(" "));
    let _ = writeln!(text, "complete -c attache -n '{none}' -a '(attache __complete agents)' -d 'agent'");
    for flag in global_flags() {
        fish_flag(&mut text, "", flag);
    }
    for flag in TOP.own_flags() {
        fish_flag(&mut text, &none, flag);
    }
    for command in TOP.commands {
        let _ = writeln!(
            text,
            "complete -c attache -n '{none}' -a {} -d '{}'",
            command.name,
            escape_single_quoted(command.about)
        );
        let inner: Vec<&str> = command.commands.iter().map(|command| command.name).collect();
        let inner = inner.join(" ");
        let mut seen = format!("__fish_seen_subcommand_from {}", command.name);
        if !inner.is_empty() {
            for sub in command.commands {
                let sub_seen = format!("{seen}; and __fish_seen_subcommand_from {}", sub.name);
                let _ = writeln!(
                    text,
                    "complete -c attache -n '{seen}; and not __fish_seen_subcommand_from {inner}' -a {} -d '{}'",
                    sub.name,
                    escape_single_quoted(sub.about)
                );
                fish_command(&mut text, &sub_seen, sub);
            }
            seen = format!("{seen}; and not __fish_seen_subcommand_from {inner}");
        }
        fish_command(&mut text, &seen, command);
    }
    text
}

fn fish_command(text: &mut String, seen: &str, command: &'static Command) {
    command.own_flags().for_each(|flag| fish_flag(text, seen, flag));
    if let Some(hint) = command.positionals.first().map(|word| word.hint) {
        let values = fish_hint(hint);
        if !values.is_empty() {
            let _ = writeln!(text, "complete -c attache -n '{seen}' {values}");
        }
    }
}

fn fish_flag(text: &mut String, seen: &str, flag: &Flag) {
    text.push_str("complete -c attache");
    if !seen.is_empty() {
        let _ = write!(text, " -n '{seen}'");
    }
    if let Some(short) = flag.short {
        let _ = write!(text, " -s {short}");
    }
    let _ = write!(text, " -l {}", flag.name);
    if flag.value.is_some() {
        let _ = write!(text, " -r {}", fish_hint(flag.hint));
    }
    let _ = writeln!(text, " -d '{}'", escape_single_quoted(flag.about));
}

fn fish_hint(hint: Hint) -> String {
    match hint {
        Hint::Text | Hint::UpTo(_) => String::new(),
        Hint::File => "-F".to_owned(),
        Hint::Dir => "-a '(__fish_complete_directories)'".to_owned(),
        Hint::Command => "-a '(__fish_complete_command)'".to_owned(),
        Hint::Agent => "-a '(attache __complete agents)'".to_owned(),
        Hint::Session => "-a '(attache __complete sessions)'".to_owned(),
        Hint::OneOf(words) => format!("-a '{}'", words.join(" ")),
    }
}

/// Escapes text between single quotes in fish and zsh.
fn escape_single_quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_knows_every_verb() {
        for shell in SHELLS {
            let script = completions(shell);
            for (_, command) in paths() {
                assert!(script.contains(command.name), "{shell}: {}", command.name);
            }
        }
    }
}
