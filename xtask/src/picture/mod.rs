//! `cargo xtask picture`: the chat at work, as an SVG for the README.
//!
//! The real program runs on a pseudo terminal in a small project, with a scripted model. What its
//! screen shows at the question about an edit becomes the picture.

mod svg;

use std::fs;
use std::path::Path;
use std::time::Duration;

use attache_rigs::interop::install;
use attache_rigs::screen::Screen;

use crate::repo;

const HELP: &str = "usage: cargo xtask picture [--program FILE]
  --program FILE   the program to show, in place of one that is built";

const OUT: &str = "docs/chat.svg";
const SCRIPT: &str = include_str!("script.txt");
const PROJECT: [(&str, &str); 2] = [
    (
        "cart.py",
        "def total(prices, discount=0):\n    \"\"\"Sum of the prices, less a discount in percent.\"\"\"\n    \
         return sum(prices) - discount\n",
    ),
    (
        "test_cart.py",
        "from cart import total\n\nassert total([40, 60]) == 100\nassert total([40, 60], discount=10) == 90\n\
         assert total([20, 30], discount=10) == 45\nprint(\"3 passed\")\n",
    ),
];
const PROMPT: &str = "the discount is wrong for small carts, fix it";

const ROWS: u16 = 44;
const COLUMNS: u16 = 88;
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let program = match args {
        [] => {
            let [program] = install::programs(false, ["attache-cli"], ["attache"])?;
            program
        }
        [option, program] if option == "--program" => program.clone(),
        _ => return Err(HELP.to_owned()),
    };
    let home = repo::root().join("target").join(format!("picture-{}", std::process::id()));
    let drawn = draw(&program, &home);
    let _ = fs::remove_dir_all(&home);
    let out = repo::root().join(OUT);
    fs::write(&out, drawn?).map_err(|error| format!("{OUT}: {error}"))?;
    println!("wrote {OUT}");
    Ok(())
}

fn draw(program: &str, home: &Path) -> Result<String, String> {
    let project = home.join("shop");
    let failed = |error: std::io::Error| format!("{}: {error}", project.display());
    fs::create_dir_all(&project).map_err(failed)?;
    for (name, text) in PROJECT {
        fs::write(project.join(name), text).map_err(failed)?;
    }
    let script = home.join("script.txt");
    fs::write(&script, SCRIPT).map_err(failed)?;
    let agent = format!("{program} agent --no-store --model script:{}", script.display());
    let command = pty_process::blocking::Command::new(program)
        .args(["--agent", &agent])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("TERM", "xterm-256color")
        .env("COLORTERM", "truecolor")
        .env("LANG", "C.UTF-8")
        .current_dir(&project);
    let screen = Screen::start(command, ROWS, COLUMNS)?;
    let shows = |text: &'static str| move |screen: &vt100::Screen| screen.contents().contains(text);
    screen.wait("the prompt", LIMIT, shows("> "))?;
    screen.keys(&format!("{PROMPT}\r"))?;
    screen.wait("the question", LIMIT, shows("discount / 100"))?;
    // Answers are not taken at once, and have their keys only then.
    screen.wait("its answers", LIMIT, shows("1 y Yes, once"))?;
    // Above the prompt are names of this machine.
    Ok(screen.look(|screen| {
        let columns = screen.size().1;
        let first = screen.rows(0, columns).position(|row| row.contains(PROMPT));
        svg::draw(screen, first.unwrap_or_default() as u16)
    }))
}
