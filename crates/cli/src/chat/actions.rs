//! Effects that need more than the screen: lists for pickers, exports, the record of the
//! conversation.

use std::fmt::Write as _;
use std::path::PathBuf;

use attache::client::Session;

use super::app::{Effect, Pick};
use super::drive::Driver;
use super::transcript::Severity;
use super::ui::TaskResult;
use super::undo::Applied;
use super::{Opener, clipboard, files, help};
use crate::error::{Context as _, Failure, Result};
use crate::run::Connection;
use crate::session_store::Record;
use attache_term::picker::{Picker, Row};

impl Driver<'_> {
    /// Performs an effect that is not about the session. Returns it if it is another one.
    pub(super) fn aside_effect(&mut self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::ListPermissions => self.list_permissions(),
            Effect::Revoke(number) => match self.starter.revoke(number) {
                Ok(()) => self.app.notice(Severity::Info, format!("revoked {number}")),
                Err(failure) => self.tell(failure),
            },
            Effect::ListConversations => self.list_conversations(),
            Effect::ListServers => self.list_servers(),
            Effect::Login => self.offer_login(),
            Effect::Export(file) => match self.export(file.as_deref()) {
                Ok(path) => self.app.notice(Severity::Info, format!("saved in {}", path.display())),
                Err(failure) => self.tell(failure),
            },
            Effect::ListFiles => {
                let (cwd, sender) = (self.app.canvas.cwd.clone(), self.ui.task_results.0.clone());
                tokio::task::spawn_blocking(move || {
                    let _ = sender.blocking_send(TaskResult::Files(files::walk(&cwd)));
                });
            }
            Effect::PastePicture => {
                let (directory, sender) = (self.starter.pastes(), self.ui.task_results.0.clone());
                // A thread of its own: a program for the clipboard may never end.
                std::thread::spawn(move || {
                    let pasted = clipboard::paste(&directory);
                    let applied = Applied::new(move |app| match pasted {
                        Ok(path) => app.editor.paste(&clipboard::mention(&path)),
                        Err(why) => app.notice(Severity::Warning, why),
                    });
                    let _ = sender.blocking_send(TaskResult::Apply(applied));
                });
            }
            Effect::OpenUrl(url) => {
                // Not awaited: if sixteen results are still unread, this one is dropped.
                let _ = self.ui.task_results.0.try_send(TaskResult::Browsed(crate::forms::open(&url)));
            }
            other => return self.checkpoint_effect(other),
        }
        None
    }

    fn list_permissions(&mut self) {
        match self.starter.remembered() {
            Err(failure) => self.tell(failure),
            Ok(rows) if rows.is_empty() => {
                self.app.notice(Severity::Info, "nothing is always allowed or denied in this project");
            }
            Ok(rows) => self.app.picker = Some(Picker::new("Revoke a permission", rows)),
        }
    }

    /// Offers the conversations with all agents in all directories. One that this agent can load
    /// here is opened in this chat, another one in a new chat in its place.
    fn list_conversations(&mut self) {
        let now = std::time::SystemTime::now();
        let current = self.saved.as_ref().and_then(|saved| saved.record()).map(|record| record.id);
        let records = match self.starter.conversations() {
            Ok(records) => records,
            Err(failure) => return self.tell(failure),
        };
        let setup = &self.connection.setup;
        let loads = self.connection.agent.loader().is_some();
        let pick = |record: Record| {
            let row = super::resume::row(&record, now);
            let here = record.cwd == setup.cwd && record.agent_command == setup.spec.identity();
            let value = match here && loads {
                true => Pick::Load(record.session_id.as_str().into()),
                false => Pick::Become(vec!["--resume".to_owned(), record.id]),
            };
            Row { label: row.label, about: row.about, current: false, value }
        };
        let others = records.into_iter().filter(|record| Some(&record.id) != current.as_ref());
        let rows: Vec<_> = others.map(pick).collect();
        match rows.is_empty() {
            // The agent may have sessions of other programs.
            true => self.app.effects.push_back(Effect::ListSessions),
            false => self.app.picker = Some(Picker::new("Resume", rows)),
        }
    }

    fn list_servers(&mut self) {
        let Opener { mcp_servers, .. } = &self.opener;
        if mcp_servers.is_empty() {
            let text = "no MCP servers; [mcp_servers] in the settings or --mcp-config adds them";
            return self.app.notice(Severity::Info, text);
        }
        let lines = help::servers(mcp_servers, &self.app.canvas);
        self.app.aside(lines);
    }

    fn offer_login(&mut self) {
        let rows = login_rows(&self.connection);
        match rows.is_empty() {
            true => self.app.notice(Severity::Info, "the agent offers no login"),
            false => self.app.picker = Some(Picker::new("Log in", rows)),
        }
    }

    /// Writes the recorded conversation. Without a name the file is named after the session.
    fn export(&self, file: Option<&str>) -> Result<PathBuf> {
        let saved = self.saved.as_ref().ok_or_else(|| Failure::runtime("nothing was said yet"))?;
        let default = || {
            let id = saved.record().map_or_else(String::new, |record| record.id);
            format!("attache-{}.md", crate::session_store::file_name(crate::session_store::short(&id)))
        };
        let path = self.app.canvas.cwd.join(file.map_or_else(default, str::to_owned));
        let title = self.app.state.title.clone().unwrap_or_else(|| "Conversation".to_owned());
        let html = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
        let messages = saved.messages();
        let text = match html {
            true => to_html(&title, &self.app.agent, &messages),
            false => to_markdown(&title, &self.app.agent, &messages),
        };
        let mut options = std::fs::OpenOptions::new();
        // An existing file is not replaced by a typo.
        let mut out = options.write(true).create_new(true).open(&path).context(path.display())?;
        std::io::Write::write_all(&mut out, text.as_bytes()).context(path.display())?;
        Ok(path)
    }

    /// Records the conversation before its first prompt, so that it can be resumed. An error does
    /// not end the chat.
    pub(super) async fn save_conversation(&mut self, session: &Session, prompt: &str) {
        if self.saved.is_some() {
            return;
        }
        let title = prompt.lines().next().unwrap_or_default().chars().take(80).collect::<String>();
        match self.starter.save(&self.connection, session, &title).await {
            Ok((saved, recorder)) => {
                self.saved = Some(saved);
                if let Some(traffic) = &mut self.ui.traffic {
                    traffic.record(recorder);
                }
            }
            Err(failure) => {
                let failure = failure.context("this conversation is not saved");
                tracing::warn!(error = %failure.message, "conversation not saved");
            }
        }
    }

    /// Returns the record of the conversation, if it can be resumed.
    pub(crate) fn resumable(&self) -> Option<Record> {
        let record = self.saved.as_ref()?.record()?;
        (record.turns > 0 && record.restorable != Some(false)).then_some(record)
    }
}

/// The login methods of an agent, each with the command of this program that uses it.
pub(super) fn login_rows(connection: &Connection) -> Vec<Row<Pick>> {
    let spec = &connection.setup.spec;
    let agent = match spec.known {
        true => vec![spec.name.clone()],
        false => vec!["--agent".to_owned(), spec.identity()],
    };
    let row = |method: &attache::wire::v1::AuthMethod| {
        let id = method.id()?.to_string();
        let words = ["auth", "login", "--method", &id].map(str::to_owned);
        Some(Row {
            label: method.name().unwrap_or(&id).to_owned(),
            about: id.clone(),
            current: false,
            value: Pick::Login(agent.iter().cloned().chain(words).collect()),
        })
    };
    connection.agent.auth_methods().iter().filter_map(row).collect()
}

fn speaker<'a>(role: &str, agent: &'a str) -> &'a str {
    if role == "user" { "You" } else { agent }
}

fn to_markdown(title: &str, agent: &str, messages: &[(&str, String)]) -> String {
    let mut out = format!("# {title}\n");
    for (role, text) in messages {
        let _ = write!(out, "\n## {}\n\n{}\n", speaker(role, agent), text.trim());
    }
    out
}

fn to_html(title: &str, agent: &str, messages: &[(&str, String)]) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n\
         body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}\n\
         h2 {{ font-size: 1rem; margin: 2rem 0 0.3rem }}\n\
         pre {{ font: 14px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 }}\n\
         </style>\n<h1>{title}</h1>\n",
        title = escape(title),
    );
    for (role, text) in messages {
        let _ =
            write!(out, "<h2>{}</h2>\n<pre>{}</pre>\n", escape(speaker(role, agent)), escape(text.trim()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_become_pages() {
        let messages = [("user", "what is <b>?\n".to_owned()), ("agent", "A *tag* & more".to_owned())];
        let markdown = to_markdown("Tags", "Echo", &messages);
        assert_eq!(markdown, "# Tags\n\n## You\n\nwhat is <b>?\n\n## Echo\n\nA *tag* & more\n");
        let html = to_html("Tags", "Echo", &messages);
        assert!(html.contains("<pre>what is &lt;b&gt;?</pre>"), "{html}");
        assert!(html.contains("<h2>Echo</h2>\n<pre>A *tag* &amp; more</pre>"), "{html}");
    }
}
