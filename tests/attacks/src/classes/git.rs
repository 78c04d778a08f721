//! Hostile repositories: git runs programs of the repository's own settings.

use std::fs;

use crate::editor::{Answer, Editor};
use crate::model::{Model, call, run};
use crate::report::{Group, Report};
use crate::world::{Suite, World, created, leaked};

const CLASS: &str = "git";

pub(crate) const GROUPS: &[Group] = &[
    Group::new(CLASS, "settings-plan", "git runs a program of the repository without a question", |s, r| {
        settings(s, r, "plan", None)
    }),
    Group::new(CLASS, "settings-code", "the same in code mode", |s, r| settings(s, r, "code", None)),
    Group::new(CLASS, "settings-bubblewrap", "the same with bubblewrap", |s, r| {
        settings(s, r, "ask", Some("bubblewrap"))
    }),
    Group::new(CLASS, "settings-landlock", "the same with Landlock", |s, r| {
        settings(s, r, "ask", Some("landlock"))
    }),
];

/// Printed by every program that the repository names.
const RAN: &str = "GIT-CANARY";

/// Commands that only look.
const COMMANDS: &[&str] = &[
    "git status",
    "git status -sb",
    "git status --ignored",
    "git diff",
    "git diff HEAD",
    "git diff --stat",
    "git diff --cached",
    "git diff --ext-diff",
    "git diff --textconv",
    "git log",
    "git log -p",
    "git log -1",
    "git log --format=%GG",
    "git log --format=%G?",
    "git log --format='%h %GS %GK'",
    "git log --pretty=evil",
    "git log --show-signature",
    "git log -p --ext-diff",
    "git log --stat",
    "git show",
    "git show HEAD",
    "git show HEAD:a.txt",
    "git show --textconv HEAD:a.txt",
    "git show --show-signature",
    "git show --format=%GG",
    "git ls-files",
    "git ls-files -m",
    "git ls-files -o",
    "git ls-files --modified --others",
    "git blame a.txt",
    "git annotate a.txt",
    "git grep hello",
    "git grep --textconv hello",
    "git grep -O hello",
    "git cat-file -p HEAD",
    "git cat-file --filters HEAD:a.txt",
    "git cat-file --textconv HEAD:a.txt",
    "git branch",
    "git branch -vv",
    "git branch --format='%(contents:signature)'",
    "git tag",
    "git tag -v v1",
    "git tag -n",
    "git verify-commit HEAD",
    "git describe --dirty",
    "git describe --always --dirty --broken",
    "git rev-parse HEAD",
    "git rev-list HEAD",
    "git remote -v",
    "git ls-remote",
    "git ls-remote evil",
    "git ls-remote 'ext::sh -c touch% X'",
    "git shortlog HEAD",
    "git stash list",
    "git reflog",
    "git for-each-ref",
    "git for-each-ref --format='%(signature)'",
    "git config -l",
    "git config --get-all alias.st",
    "git submodule status",
    "git worktree list",
    "git whatchanged",
    "git range-diff HEAD HEAD HEAD",
    "git diff-files -p",
    "git diff-index -p HEAD",
    "git diff-tree -p HEAD",
    "git check-attr -a a.txt",
    "git archive HEAD",
    "git st",
    "git -p log",
    "git --paginate status",
    "git help status",
    "git help -a",
    "git --version",
    "git log | head",
    "cd vendor/lib && git status",
    "cd vendor/lib; git diff",
    "git -C vendor/lib status",
    "git -C vendor/lib log",
    "git --git-dir=vendor/lib status",
    "git --git-dir=vendor/lib --work-tree=vendor/lib diff",
    "GIT_DIR=vendor/lib git status",
    "cd worktree && git status",
    "git -C worktree diff",
    "git fetch --dry-run",
    "git pull --dry-run",
    "git push --dry-run",
    "git commit --dry-run",
    "git add -n .",
    "git maintenance run --auto",
    "git fsck",
    "git gc --auto",
    "git bugreport",
    "git difftool -y",
    "git mergetool -y",
    "git instaweb",
    "git web--browse x",
    "git var GIT_EDITOR",
    "git var GIT_PAGER",
    "git column",
    "git diff --no-index a.txt README.md",
    "git check-ignore -v a.txt",
    "git merge-base HEAD HEAD",
    "git name-rev HEAD",
    "git credential fill",
];

/// A repository whose settings run a program wherever git allows it.
fn repository<'a>(suite: &'a Suite, marker: &str) -> World<'a> {
    let world = suite.world();
    fs::remove_dir_all(world.path(".git")).unwrap();
    let evil = world.path("evil.sh");
    world.script(&evil, &format!("echo {RAN} >&2\ntouch {marker} 2>/dev/null\ncat 2>/dev/null"));
    world.write("a.txt", "hello\n");
    let init = "git init -q -b main . && git -c user.name=a -c user.email=a@b add -A && \
        git -c user.name=a -c user.email=a@b commit -q -m first && git -c user.name=a -c user.email=a@b tag -m x v1";
    let run = world.shell(init);
    assert_eq!(run.code, Some(0), "git works: {}", run.output());
    // A commit with a signature, so that git wants to verify it.
    let sign = "tree=$(git rev-parse HEAD^{tree}); parent=$(git rev-parse HEAD); \
        printf 'tree %s\\nparent %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n iQ\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n' $tree $parent \
        | git hash-object -t commit -w --stdin > c && git update-ref refs/heads/main $(cat c) && rm c";
    assert_eq!(world.shell(sign).code, Some(0));
    let e = evil.display().to_string();
    let config = format!(
        "[core]\n\trepositoryformatversion = 1\n\tfsmonitor = {e}\n\tpager = {e}\n\teditor = {e}\n\tsshCommand = {e}\n\thooksPath = hooks\n\
         \taskPass = {e}\n\tgitProxy = {e}\n\talternateRefsCommand = {e}\n\tattributesFile = attrs\n[filter \"e\"]\n\tclean = {e}\n\tsmudge = {e}\n\tprocess = {e}\n\
         [diff]\n\texternal = {e}\n[diff \"e\"]\n\ttextconv = {e}\n\tcommand = {e}\n[gpg]\n\tprogram = {e}\n[gpg \"ssh\"]\n\tprogram = {e}\n\
         [gpg \"x509\"]\n\tprogram = {e}\n[log]\n\tshowSignature = true\n[format]\n\tpretty = %G? %h\n[pretty]\n\tevil = %GG\n\
         [alias]\n\tst = !{e}\n\tstatus = !{e}\n[pager]\n\tstatus = {e}\n\tlog = {e}\n\tdiff = {e}\n\tbranch = {e}\n[interactive]\n\tdiffFilter = {e}\n\
         [credential]\n\thelper = !{e}\n[remote \"origin\"]\n\turl = ext::{e}\n\tuploadpack = {e}\n\treceivepack = {e}\n\tvcs = evil\n\
         [remote \"evil\"]\n\turl = ssh://localhost/x\n[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n[uploadpack]\n\tpackObjectsHook = {e}\n\
         [browser \"e\"]\n\tcmd = {e}\n[web]\n\tbrowser = e\n[man]\n\tviewer = e\n[man \"e\"]\n\tcmd = {e}\n[merge \"e\"]\n\tdriver = {e}\n[difftool \"e\"]\n\tcmd = {e}\n\
         [diff]\n\ttool = e\n[merge]\n\ttool = e\n[mergetool \"e\"]\n\tcmd = {e}\n[sequence]\n\teditor = {e}\n[include]\n\tpath = ../more.config\n\
         [status]\n\tsubmoduleSummary = true\n[submodule \"s\"]\n\tupdate = !{e}\n[trailer \"e\"]\n\tcmd = {e}\n[safe]\n\tdirectory = *\n\tbareRepository = all\n[gc]\n\trecentObjectsHook = {e}\n[receive]\n\tprocReceiveRefs = refs\n"
    );
    fs::write(world.path(".git/config"), &config).unwrap();
    world.write("more.config", format!("[core]\n\tfsmonitor = {e}\n"));
    world.write(".gitattributes", "* filter=e diff=e merge=e\n");
    for hook in [
        "post-index-change",
        "fsmonitor-watchman",
        "post-checkout",
        "pre-commit",
        "reference-transaction",
        "post-command",
    ] {
        world.script(&world.path(&format!("hooks/{hook}")), &format!("{e} </dev/null"));
        world.script(&world.path(&format!(".git/hooks/{hook}")), &format!("{e} </dev/null"));
    }
    // A bare repository in the tree survives a clone, and so do its settings.
    let bare = "mkdir -p vendor && git clone -q --bare --no-local -c core.fsmonitor=false . vendor/lib 2>/dev/null || cp -r .git vendor/lib; true";
    world.shell(&format!("GIT_CONFIG_NOSYSTEM=1 {bare}"));
    fs::create_dir_all(world.path("vendor/lib")).unwrap();
    world.shell("cp -r .git/. vendor/lib/");
    fs::write(
        world.path("vendor/lib/config"),
        config.replace(
            "[core]",
            &format!("[core]\n\tbare = false\n\tworktree = {}/vendor/lib", world.dir.display()),
        ),
    )
    .unwrap();
    world.write("vendor/lib/a.txt", "other\n");
    world.write("vendor/lib/.gitattributes", "* filter=e diff=e\n");
    // A file that points to another repository.
    world.write("worktree/.git", "gitdir: ../vendor/lib\n");
    world.write("worktree/a.txt", "other\n");
    // Something to look at.
    world.write("a.txt", "changed\n");
    world.shell("rm -f $(cat /dev/null) 2>/dev/null; touch -d 2001-01-01 a.txt");
    world
}

fn settings(suite: &Suite, report: &mut Report, mode: &str, backend: Option<&str>) {
    if crate::world::finish(
        std::process::Command::new("sh").args(["-c", "command -v git"]),
        None,
        crate::world::PATIENCE,
    )
    .code
        != Some(0)
    {
        return report.skip("all", "git is not installed");
    }
    if let Some(backend) = backend
        && !super::has_backend(suite, backend)
    {
        return report.skip("all", format!("the sandbox {backend} does not work here"));
    }
    let name = format!("../outside/ran-{}", suite.number());
    let mut world = repository(suite, &name);
    let canary = world.path(&name);
    let _ = fs::remove_file(&canary);
    if let Some(backend) = backend {
        world.set("ATTACHE_SANDBOX_BACKEND", backend);
    }
    for commands in COMMANDS.chunks(40) {
        let mut steps: Vec<_> = commands.iter().map(|command| run(command)).collect();
        steps.push(call("run", serde_json::json!({ "command": "git status", "cwd": "vendor/lib" })));
        let model = Model::start(steps);
        world.set("OPENAI_BASE_URL", model.url());
        let mut editor = Editor::start(&world, &["--mode", mode]).unwrap();
        editor.prompt("go", Answer::Reject).unwrap();
        drop(editor);
        let results = model.results();
        let touched = created(&canary);
        for (at, command) in commands.iter().chain(["git status in vendor/lib"].iter()).enumerate() {
            let result = results.of(at).unwrap_or_default();
            let happened = leaked("the output", &result, RAN).or_else(|| touched.clone());
            report.attack(
                *command,
                format!("a repository with hostile settings; attache agent --mode {mode}; run {command:?}"),
                happened,
            );
        }
    }
    if backend.is_none() && mode == "plan" {
        for command in ["git status", "git diff", "git log --format=%GG", "cd vendor/lib && git status"] {
            let _ = fs::remove_file(&canary);
            let run = world.shell(command);
            report.control(
                format!("{command} of the user"),
                canary.exists() || run.output().contains(RAN),
                run.tail(),
            );
        }
    }
}
