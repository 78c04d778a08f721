//! The real program on a pseudo terminal with a VT100 screen, and an agent inside the test: keys
//! in, screen out.
//!
//! Tests wait for what the screen shows, never for time; the limit only turns a hang into a
//! failure.

use std::fs;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::agent::Agent;
use attache::listen_unix;
use pty_process::Size;
use pty_process::blocking::{Command, Pts, Pty};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long something may take that takes no time.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) const ENTER: &str = "\r";
pub(crate) const ESC: &str = "\x1b";
pub(crate) const SHIFT_TAB: &str = "\x1b[Z";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const TAB: &str = "\t";
pub(crate) const UP: &str = "\x1b[A";
pub(crate) const DOWN: &str = "\x1b[B";

/// A directory for one test.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("attache-chat-{}-{number}", std::process::id()));
        fs::create_dir_all(path.join("work")).unwrap();
        fs::create_dir_all(path.join("home")).unwrap();
        Place(path.canonicalize().unwrap())
    }

    /// Where the session works.
    pub(crate) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Shown {
    parser: Mutex<vt100::Parser<Titles>>,
    /// All that was written, as it came.
    raw: Mutex<Vec<u8>>,
    changed: Notify,
}

/// What programs can do to a terminal beside its cells.
#[derive(Default)]
struct Titles {
    said: Vec<String>,
}

impl vt100::Callbacks for Titles {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.said.push(String::from_utf8_lossy(title).into_owned());
    }
}

/// A running chat.
pub(crate) struct Chat {
    pub(crate) place: Arc<Place>,
    pty: Arc<Pty>,
    pts: Pts,
    shown: Arc<Shown>,
    child: Option<Child>,
    serving: JoinHandle<()>,
}

/// How the program is started.
pub(crate) struct Start {
    args: Vec<String>,
    env: Vec<(String, String)>,
    size: (u16, u16),
    shell: Option<String>,
    place: Arc<Place>,
}

impl Start {
    pub(crate) fn new() -> Start {
        Start {
            args: vec!["--ask".to_owned()],
            env: Vec::new(),
            size: (30, 80),
            shell: None,
            place: Arc::new(Place::new()),
        }
    }

    /// Where another one was, with all that it has left there.
    pub(crate) fn after(mut self, chat: &Chat) -> Start {
        self.place = chat.place.clone();
        self
    }

    /// The program's arguments, instead of `--ask`.
    pub(crate) fn args(mut self, args: &[&str]) -> Start {
        self.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Start {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Rows and columns.
    pub(crate) fn size(mut self, rows: u16, columns: u16) -> Start {
        self.size = (rows, columns);
        self
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Starts the program with this agent, and waits for its prompt.
    pub(crate) async fn with(self, agent: Agent) -> Chat {
        let socket = self.place.path().join("agent");
        let listener = listen_unix(&socket).unwrap();
        let serving = tokio::spawn(async move {
            if let Ok(link) = listener.accept().await {
                let _ = agent.serve(link).await;
            }
        });
        let mut chat = self.run(&format!("unix:{}", socket.display()), serving);
        chat.sees("> ").await;
        chat
    }

    /// Starts the program with an agent for each connection, and waits for its prompt.
    pub(crate) async fn with_each(self, agent: impl Fn() -> Agent + Send + 'static) -> Chat {
        let socket = self.place.path().join("agent");
        let listener = listen_unix(&socket).unwrap();
        let serving = tokio::spawn(async move {
            while let Ok(link) = listener.accept().await {
                let agent = agent();
                tokio::spawn(async move { drop(agent.serve(link).await) });
            }
        });
        let mut chat = self.run(&format!("unix:{}", socket.display()), serving);
        chat.sees("> ").await;
        chat
    }

    /// The program runs in a shell with this script; `"$@"` is the program.
    pub(crate) fn in_shell(mut self, script: &str) -> Start {
        self.shell = Some(script.to_owned());
        self
    }

    /// Starts the program with an agent that does what a script says, and waits for its prompt.
    pub(crate) async fn with_script(self, script: &str) -> Chat {
        let file = self.place.path().join("script");
        fs::write(&file, script).unwrap();
        let agent = format!("{} {}", crate::world::test_agent().display(), file.display());
        let mut chat = self.run_with(&agent);
        chat.sees("> ").await;
        chat
    }

    /// Starts the program without naming an agent, and does not wait for anything.
    pub(crate) fn run_alone(self) -> Chat {
        self.start_program(&[], tokio::spawn(std::future::pending()))
    }

    /// Starts the program with a command as its agent, and does not wait for anything.
    pub(crate) fn run_with(self, agent: &str) -> Chat {
        self.run(agent, tokio::spawn(std::future::pending()))
    }

    fn run(self, agent: &str, serving: JoinHandle<()>) -> Chat {
        self.start_program(&["--agent", agent], serving)
    }

    fn start_program(self, agent: &[&str], serving: JoinHandle<()>) -> Chat {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        let (rows, columns) = self.size;
        pty.resize(Size::new(rows, columns)).unwrap();
        let program = env!("CARGO_BIN_EXE_attache");
        let command = match &self.shell {
            None => Command::new(program),
            Some(script) => Command::new("sh").args(["-c", script, "sh", program]),
        };
        let mut command = command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.place.home())
            .env("ATTACHE_HOME", self.place.home().join("attache"))
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("ATTACHE_NOTIFY", "off")
            .env("ATTACHE_TITLE", "false")
            .envs(self.env)
            .current_dir(self.place.work())
            .args(agent)
            .args(self.args);
        let child = command.spawn_borrowed(&pts).unwrap();
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 1000, Titles::default());
        let shown =
            Arc::new(Shown { parser: Mutex::new(parser), raw: Mutex::default(), changed: Notify::new() });
        let pty = Arc::new(pty);
        let (reader, screen) = (pty.clone(), shown.clone());
        // It ends with the terminal, which its test closes.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = (&*reader).read(&mut bytes) {
                screen.raw.lock().unwrap().extend_from_slice(&bytes[..count]);
                screen.parser.lock().unwrap().process(&bytes[..count]);
                screen.changed.notify_waiters();
            }
        });
        Chat { place: self.place, pty, pts, shown, child: Some(child), serving }
    }
}

impl Chat {
    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and sends it.
    pub(crate) fn say(&mut self, line: &str) {
        self.keys(&format!("{line}{ENTER}"));
    }

    /// Waits for a permission question that takes answers.
    pub(crate) async fn asks(&mut self, headline: &str) {
        self.sees(headline).await;
        self.sees(" 1 y ").await;
    }

    /// Waits until a form or page takes keys.
    pub(crate) async fn asks_for(&mut self, text: &str) {
        self.sees(text).await;
        self.sees("Esc").await;
    }

    /// Looks at the screen.
    pub(crate) fn look<T>(&self, see: impl FnOnce(&vt100::Screen) -> T) -> T {
        see(self.shown.parser.lock().unwrap().screen())
    }

    pub(crate) fn text(&self) -> String {
        self.look(vt100::Screen::contents)
    }

    /// Everything that scrolled by, and the screen.
    pub(crate) fn history(&self) -> String {
        let mut parser = self.shown.parser.lock().unwrap();
        let screen = parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let (rows, columns) = screen.size();
        let mut lines: Vec<String> = Vec::new();
        let mut above = screen.scrollback();
        while above > 0 {
            screen.set_scrollback(above);
            let take = above.min(usize::from(rows));
            lines.extend(screen.rows(0, columns).take(take).map(|line| line.trim_end().to_owned()));
            above -= take;
        }
        screen.set_scrollback(0);
        lines.push(screen.contents());
        lines.join("\n")
    }

    /// Waits until a sequence was written to the terminal.
    pub(crate) async fn writes(&mut self, sequence: &str) {
        let shown = self.shown.clone();
        let written = move || String::from_utf8_lossy(&shown.raw.lock().unwrap()).contains(sequence);
        self.until(&format!("{sequence:?} among its bytes"), |_| written()).await;
    }

    /// All that was written to the terminal.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.shown.raw.lock().unwrap()).into_owned()
    }

    pub(crate) fn titles(&self) -> Vec<String> {
        self.shown.parser.lock().unwrap().callbacks().said.clone()
    }

    /// Waits until the screen is as it should be.
    pub(crate) async fn until(&mut self, what: &str, seen: impl Fn(&vt100::Screen) -> bool) {
        let shown = self.shown.clone();
        let waiting = async {
            loop {
                let mut changed = pin!(shown.changed.notified());
                changed.as_mut().enable();
                if seen(shown.parser.lock().unwrap().screen()) {
                    return;
                }
                changed.await;
            }
        };
        if tokio::time::timeout(LIMIT, waiting).await.is_err() {
            let ended = self.child.as_mut().map(Child::try_wait);
            panic!("the screen never showed {what} ({ended:?}):\n{}", self.text());
        }
    }

    pub(crate) async fn sees(&mut self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text)).await;
    }

    pub(crate) async fn sees_no_more(&mut self, text: &str) {
        self.until(&format!("nothing like {text}"), |screen| !screen.contents().contains(text)).await;
    }

    /// Waits for the line that begins with `>` and shows this text, with the cursor behind it.
    pub(crate) async fn prompts(&mut self, text: &str) {
        let wanted = format!("> {text}");
        let wanted = wanted.trim_end();
        self.until(&format!("the prompt {wanted:?}"), |screen| {
            let columns = screen.size().1;
            let row = usize::from(screen.cursor_position().0);
            screen.rows(0, columns).nth(row).is_some_and(|line| line.trim_end() == wanted)
        })
        .await;
    }

    /// The cell at which a text begins.
    pub(crate) fn cell_of(&self, text: &str) -> vt100::Cell {
        self.look(|screen| {
            let columns = screen.size().1;
            for (row, line) in screen.rows(0, columns).enumerate() {
                if let Some(at) = line.find(text) {
                    let column =
                        line[..at].chars().map(|c| if c as u32 > 0x2e80 { 2 } else { 1 }).sum::<u16>();
                    return screen.cell(row as u16, column).unwrap().clone();
                }
            }
            panic!("{text:?} is not on the screen:\n{}", screen.contents());
        })
    }

    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.shown.parser.lock().unwrap().screen_mut().set_size(rows, columns);
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    /// The agent is gone.
    pub(crate) async fn hang_up(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Waits for the end of the program, and for the last of what it has written.
    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it ends once");
        let id = child.id().to_string();
        let waiting = tokio::task::spawn_blocking(move || child.wait().unwrap());
        let Ok(status) = tokio::time::timeout(LIMIT, waiting).await else {
            let _ = std::process::Command::new("kill").args(["-KILL", &id]).status();
            panic!("the program does not end:\n{}", self.text());
        };
        let restored = |screen: &vt100::Screen| !screen.hide_cursor() && !screen.bracketed_paste();
        self.until("a cursor, and pastes without brackets", restored).await;
        status.unwrap()
    }

    /// Whether the terminal echoes and edits lines, as it does for a shell.
    pub(crate) fn is_cooked(&self) -> bool {
        let tty = self.pts.as_fd().try_clone_to_owned().unwrap();
        let output = std::process::Command::new("stty").arg("-a").stdin(Stdio::from(tty)).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let has = |word: &str| text.split([' ', ';', '\n']).any(|is| is == word);
        has("icanon") && has("echo") && has("isig")
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Something that the test lets the agent continue with.
#[derive(Clone, Default)]
pub(crate) struct Cue(Arc<Notify>);

impl Cue {
    pub(crate) fn give(&self) {
        self.0.notify_one();
    }

    pub(crate) fn given(&self) -> impl Future<Output = ()> + '_ {
        self.0.notified()
    }
}
