//! The table of read-only commands, each with the flags that keep it read-only.
//!
//! Lists of what is allowed, never of what is forbidden: a flag that a newer version of a tool adds
//! is a question.

/// A command that only reads as long as only these flags are used.
pub(super) struct ReadOnlyCommand {
    pub(super) name: &'static str,
    /// Short flags without a value.
    pub(super) short: &'static str,
    /// Short flags with a value, attached or as the next word.
    pub(super) valued: &'static str,
    /// Long flags, with or without `=value`.
    pub(super) long: &'static [&'static str],
    /// The meaning of the words that are not flags.
    pub(super) operands: Operands,
    /// Values of short flags are always words of their own, also for flags in the middle of a
    /// group.
    pub(super) values_are_words: bool,
}

/// The meaning of the words of a command that are not flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// None are allowed.
    None,
    /// Text that is not opened.
    Text,
    /// Files or directories to read.
    Paths,
    /// Files to read, not directories.
    Files,
    /// At most one file: a second one would be written.
    OnePath,
    /// A pattern, then files; all files when the pattern came by a flag.
    PatternThenPaths,
    /// `+FORMAT` only.
    Format,
}

use Operands::{Files, Format, None as Nothing, OnePath, Paths, PatternThenPaths, Text};

const fn known(
    name: &'static str,
    short: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> ReadOnlyCommand {
    ReadOnlyCommand { name, short, valued, long, operands, values_are_words: false }
}

const GREP: &[&str] = &[
    "--after-context",
    "--before-context",
    "--color",
    "--colour",
    "--context",
    "--count",
    "--exclude",
    "--exclude-dir",
    "--extended-regexp",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--ignore-case",
    "--include",
    "--invert-match",
    "--line-number",
    "--line-regexp",
    "--max-count",
    "--no-filename",
    "--only-matching",
    "--perl-regexp",
    "--quiet",
    "--recursive",
    "--regexp",
    "--with-filename",
    "--word-regexp",
];

pub(super) const KNOWN: &[ReadOnlyCommand] = &[
    known("basename", "az", "s", &["--suffix"], Text),
    known("cat", "AbEensTtuv", "", &["--number", "--show-all", "--show-ends"], Paths),
    known("cd", "", "", &[], Paths),
    known("cmp", "bls", "n", &["--print-bytes", "--silent"], Paths),
    known("comm", "123", "", &["--nocheck-order"], Paths),
    known("cut", "sz", "bcdf", &["--delimiter", "--fields", "--bytes", "--characters"], Paths),
    known("date", "uR", "", &["--utc", "--rfc-email"], Format),
    known("df", "aHhikPT", "", &["--human-readable"], Paths),
    // Not `-r`: it follows links.
    known(
        "diff",
        "aBbcdEeiNnpqsTtuwy",
        "U",
        &["--brief", "--color", "--unified", "--ignore-all-space"],
        Files,
    ),
    known("dirname", "z", "", &[], Text),
    known(
        "du",
        "abchkmsx",
        "d",
        &["--all", "--apparent-size", "--human-readable", "--max-depth", "--summarize", "--total"],
        Paths,
    ),
    known("echo", "neE", "", &[], Text),
    known("egrep", "cEFHhiLlnoPqrsvwx", "ABCem", GREP, PatternThenPaths),
    known("false", "", "", &[], Nothing),
    known("fgrep", "cEFHhiLlnoPqrsvwx", "ABCem", GREP, PatternThenPaths),
    known("file", "bi", "", &["--brief", "--mime", "--mime-type"], Paths),
    known("grep", "cEFHhiLlnoPqrsvwx", "ABCem", GREP, PatternThenPaths),
    known("head", "qv", "cn", &["--lines", "--bytes", "--quiet"], Paths),
    known("id", "Ggnru", "", &[], Nothing),
    known(
        "ls",
        "1aABCcdFfGghiklmnopqrRsStuUvxXZ",
        "I",
        &[
            "--all",
            "--almost-all",
            "--color",
            "--directory",
            "--human-readable",
            "--recursive",
            "--size",
            "--sort",
        ],
        Paths,
    ),
    known("nl", "", "bvw", &[], Paths),
    known("nproc", "", "", &["--all"], Nothing),
    known("printf", "", "", &[], Text),
    known("pwd", "LP", "", &[], Nothing),
    known("realpath", "ems", "", &["--canonicalize-missing"], Paths),
    known("rev", "", "", &[], Paths),
    known("rg", "cFHhiIlNnopPqsSUuvwx", "ABCegmtT", RG, PatternThenPaths),
    known("seq", "w", "fs", &[], Text),
    known("sort", "bcCdfghiMnRrsuVz", "kt", &["--key", "--numeric-sort", "--reverse", "--unique"], Paths),
    known("stat", "t", "c", &["--format", "--terse"], Paths),
    known("tac", "", "", &[], Paths),
    known("tail", "qv", "cn", &["--lines", "--bytes", "--quiet"], Paths),
    known("tr", "Ccdst", "", &["--delete", "--squeeze-repeats"], Text),
    ReadOnlyCommand {
        values_are_words: true,
        ..known("tree", "aACdDfFhinpQrsStux", "IPL", &["--dirsfirst", "--noreport"], Paths)
    },
    known("true", "", "", &[], Nothing),
    known("uname", "amnoprsv", "", &["--all"], Nothing),
    known("uniq", "cdDiuz", "fsw", &["--count", "--repeated", "--unique"], OnePath),
    known("wc", "cLlmw", "", &["--bytes", "--chars", "--lines", "--words"], Paths),
    known("which", "a", "", &[], Text),
    known("whoami", "", "", &[], Nothing),
];

// Not here: `--pre` and `--hostname-bin` run programs, `-z` runs decompressors, `-L` follows links
// out of the roots.
const RG: &[&str] = &[
    "--after-context",
    "--before-context",
    "--color",
    "--context",
    "--count",
    "--files",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--glob",
    "--heading",
    "--hidden",
    "--ignore-case",
    "--iglob",
    "--invert-match",
    "--json",
    "--line-number",
    "--max-count",
    "--max-depth",
    "--multiline",
    "--no-heading",
    "--no-ignore",
    "--no-line-number",
    "--only-matching",
    "--pcre2",
    "--quiet",
    "--regexp",
    "--smart-case",
    "--sort",
    "--stats",
    "--trim",
    "--type",
    "--type-not",
    "--vimgrep",
    "--word-regexp",
];

/// Tests of `find` that only read, each with the number of words that follow it.
pub(super) const FIND: &[(&str, usize)] = &[
    ("-name", 1),
    ("-iname", 1),
    ("-path", 1),
    ("-ipath", 1),
    ("-regex", 1),
    ("-iregex", 1),
    ("-regextype", 1),
    ("-type", 1),
    ("-maxdepth", 1),
    ("-mindepth", 1),
    ("-size", 1),
    ("-mtime", 1),
    ("-mmin", 1),
    ("-atime", 1),
    ("-ctime", 1),
    ("-perm", 1),
    ("-user", 1),
    ("-group", 1),
    ("-empty", 0),
    ("-executable", 0),
    ("-readable", 0),
    ("-writable", 0),
    ("-print", 0),
    ("-print0", 0),
    ("-printf", 1),
    ("-ls", 0),
    ("-prune", 0),
    ("-quit", 0),
    ("-not", 0),
    ("!", 0),
    ("-o", 0),
    ("-or", 0),
    ("-a", 0),
    ("-and", 0),
    ("-true", 0),
    ("-false", 0),
    ("-depth", 0),
    ("-xdev", 0),
    ("-mount", 0),
    ("(", 0),
    (")", 0),
    ("-P", 0),
];

/// Verbs of `git` that only read. Verbs that print a patch are not here: they run the filters that
/// the repository's settings name.
pub(super) const GIT: &[ReadOnlyCommand] = &[
    known(
        "status",
        "bsuz",
        "",
        &["--branch", "--ignored", "--porcelain", "--short", "--untracked-files"],
        Paths,
    ),
    known(
        "log",
        "z",
        "n",
        &[
            "--abbrev-commit",
            "--all",
            "--author",
            "--date",
            "--decorate",
            "--first-parent",
            "--follow",
            "--format",
            "--graph",
            "--grep",
            "--max-count",
            "--merges",
            "--name-only",
            "--name-status",
            "--no-decorate",
            "--no-merges",
            "--oneline",
            "--pretty",
            "--reverse",
            "--shortstat",
            "--since",
            "--stat",
            "--until",
        ],
        Paths,
    ),
    known("branch", "arv", "", &["--all", "--list", "--remotes", "--show-current", "--verbose"], Nothing),
    known(
        "ls-files",
        "cdmosz",
        "",
        &["--cached", "--deleted", "--exclude-standard", "--modified", "--others"],
        Paths,
    ),
    known(
        "rev-parse",
        "",
        "",
        &[
            "--abbrev-ref",
            "--git-dir",
            "--is-inside-work-tree",
            "--short",
            "--show-prefix",
            "--show-toplevel",
            "--verify",
        ],
        Text,
    ),
    known("describe", "", "", &["--abbrev", "--all", "--always", "--tags"], Text),
    known("remote", "v", "", &["--verbose"], Nothing),
    known("shortlog", "ens", "", &["--email", "--numbered", "--summary"], Text),
];
