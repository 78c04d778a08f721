//! Which paths lead inside.

use std::path::Path;

use attache_host::files::{FileError, Jail};

use crate::kit::Scratch;

fn outside(result: Result<String, FileError>) {
    assert!(matches!(result, Err(FileError::Outside(_))), "{result:?}");
}

#[test]
fn only_what_is_below_a_root_is_read() {
    // shows ROOT-17, FS-15
    let scratch = Scratch::new();
    let root = scratch.dir("project");
    scratch.file("project/in.txt", "in");
    scratch.file("out.txt", "out");
    scratch.file("project-2/near.txt", "near");
    let jail = Jail::new([&root]);
    assert_eq!(jail.read(&root.join("in.txt"), None, None).unwrap(), "in");
    outside(jail.read(Path::new("/etc/passwd"), None, None));
    outside(jail.read(&scratch.join("out.txt"), None, None));
    outside(jail.read(&scratch.join("project-2/near.txt"), None, None));
    outside(jail.read(&root.join("../out.txt"), None, None));
    outside(jail.read(&root.join("missing/../../out.txt"), None, None).map_err(|error| match error {
        FileError::NotFound(path) => FileError::Outside(path),
        other => other,
    }));
    outside(jail.read(Path::new("in.txt"), None, None));
    outside(jail.read(&scratch.join("project/../project/../out.txt"), None, None));
}

#[test]
fn dots_inside_are_followed() {
    let scratch = Scratch::new();
    let root = scratch.dir("project");
    scratch.file("project/a/b/deep.txt", "deep");
    scratch.file("project/top.txt", "top");
    let jail = Jail::new([&root]);
    assert_eq!(jail.read(&root.join("a/b/../../top.txt"), None, None).unwrap(), "top");
    assert_eq!(jail.read(&root.join("./a/./b/deep.txt"), None, None).unwrap(), "deep");
    assert_eq!(jail.resolve(&root.join("a/b/../x")).unwrap(), root.join("a/x"));
}

#[test]
fn links_are_followed_inside_and_refused_outside() {
    // shows ROOT-18
    let scratch = Scratch::new();
    let root = scratch.dir("project");
    scratch.file("project/real/in.txt", "in");
    scratch.file("secret/out.txt", "out");
    scratch.link("project/relative", "real");
    scratch.link("project/absolute", root.join("real"));
    scratch.link("project/file", "relative/in.txt");
    scratch.link("project/up", "../project/real/in.txt");
    scratch.link("project/escape", "../secret");
    scratch.link("project/escape-absolute", scratch.join("secret"));
    scratch.link("project/escape-file", "../secret/out.txt");
    scratch.link("project/real/sneaky", "../../secret/out.txt");
    scratch.link("project/loop", "loop");
    let jail = Jail::new([&root]);
    for name in ["relative/in.txt", "absolute/in.txt", "file", "up"] {
        assert_eq!(jail.read(&root.join(name), None, None).unwrap(), "in", "{name}");
        assert_eq!(jail.resolve(&root.join(name)).unwrap(), root.join("real/in.txt"));
    }
    for name in ["escape/out.txt", "escape-absolute/out.txt", "escape-file", "relative/sneaky"] {
        outside(jail.read(&root.join(name), None, None));
        assert!(matches!(jail.write(&root.join(name), "x"), Err(FileError::Outside(_))), "{name}");
    }
    assert_eq!(std::fs::read_to_string(scratch.join("secret/out.txt")).unwrap(), "out");
    let error = jail.read(&root.join("loop"), None, None).unwrap_err();
    assert!(error.to_string().contains("too many symbolic links"), "{error}");
}

#[test]
fn a_dot_dot_after_a_link_means_the_parent_of_its_target() {
    let scratch = Scratch::new();
    let root = scratch.dir("project");
    scratch.file("project/a/target/x", "");
    scratch.file("project/a/sibling.txt", "beside the target");
    scratch.file("project/sibling.txt", "beside the link");
    scratch.link("project/link", "a/target");
    let jail = Jail::new([&root]);
    assert_eq!(jail.read(&root.join("link/../sibling.txt"), None, None).unwrap(), "beside the target");
}

#[test]
fn a_link_from_one_root_into_another_is_followed() {
    // shows ROOT-17: the effective roots are all of them
    let scratch = Scratch::new();
    let (one, two) = (scratch.dir("one"), scratch.dir("two"));
    scratch.file("two/there.txt", "there");
    scratch.link("one/over", "../two/there.txt");
    scratch.link("one/over-absolute", two.join("there.txt"));
    let jail = Jail::new([&one, &two]);
    for path in [one.join("over"), one.join("over-absolute"), one.join("../two/there.txt")] {
        assert_eq!(jail.read(&path, None, None).unwrap(), "there");
    }
    outside(Jail::new([&one]).read(&one.join("over"), None, None));
}

#[test]
fn a_root_has_two_names_when_a_link_leads_to_it() {
    let scratch = Scratch::new();
    let real = scratch.dir("real");
    scratch.file("real/a.txt", "a");
    let link = scratch.link("link", &real);
    let jail = Jail::new([&link]);
    for path in [real.join("a.txt"), link.join("a.txt")] {
        assert_eq!(jail.read(&path, None, None).unwrap(), "a");
        assert_eq!(jail.resolve(&path).unwrap(), real.join("a.txt"));
    }
}

#[test]
fn a_missing_root_grants_nothing() {
    let scratch = Scratch::new();
    let jail = Jail::new([scratch.join("nowhere")]);
    outside(jail.read(&scratch.join("nowhere/a"), None, None));
    assert!(jail.write(&scratch.join("nowhere/a"), "").is_err());
    assert!(!scratch.join("nowhere").exists());
    let file = scratch.file("file", "");
    outside(Jail::new([&file]).read(&file, None, None));
}

#[test]
fn the_innermost_root_is_used() {
    let scratch = Scratch::new();
    let outer = scratch.dir("outer");
    let inner = scratch.dir("outer/inner");
    scratch.file("outer/inner/a", "a");
    scratch.file("outer/b", "b");
    let jail = Jail::new([&outer, &inner]);
    assert_eq!(jail.read(&inner.join("a"), None, None).unwrap(), "a");
    assert_eq!(jail.read(&inner.join("../b"), None, None).unwrap(), "b");
}

#[test]
fn the_whole_file_system_may_be_a_root() {
    let scratch = Scratch::new();
    let file = scratch.file("a", "a");
    let jail = Jail::new(["/"]);
    assert_eq!(jail.read(&file, None, None).unwrap(), "a");
    assert_eq!(
        jail.read(&Path::new("/../..").join(file.strip_prefix("/").unwrap()), None, None).unwrap(),
        "a"
    );
}
