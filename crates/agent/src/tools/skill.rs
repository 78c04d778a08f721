//! `skill`: the text of a skill.

use attache::wire::v1::ToolKind;
use attache_host::policy::Effect;
use attache_host::trust::ProjectFiles;

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, text};
use crate::blocking;
use crate::skills;

pub(super) struct Skill;

impl Tool for Skill {
    fn info(&self) -> ToolInfo {
        let about = "Returns the text of a skill.";
        ToolInfo::new(
            ToolKind::Read,
            "skill",
            about,
            &[("name", text("its name in the list of skills"), true)],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let name = arguments.text("name")?;
        let known = &cx.session.skills;
        let Some(skill) = known.iter().find(|skill| skill.name == name).cloned() else {
            let names: Vec<&str> = known.iter().map(|skill| skill.name.as_str()).collect();
            return Err(format!("no skill `{name}`; available: {}", names.join(", ")).into());
        };
        // The user's own files are part of the user's settings.
        let effects = match skill.is_of_project {
            true => vec![Effect::Read(cx.resolve(&skill.path.to_string_lossy())?.for_policy())],
            false => Vec::new(),
        };
        Ok(Job::new(format!("Read the skill {name}"), effects, move |cx: ToolContext, _| async move {
            Ok(Output::text(blocking::run(move || read(&cx, &skill)).await?))
        }))
    }
}

/// Reads a skill again, because its file may have changed since the session was opened.
fn read(cx: &ToolContext, skill: &skills::Skill) -> Result<String, String> {
    if skill.is_of_project {
        let project = ProjectFiles::scan(cx.session.workspace.cwd());
        let is_there = project.files().iter().any(|file| file.path == skill.path);
        if !is_there || !cx.session.agent.options.trust.is_trusted(&project) {
            return Err(
                "this project has changed since the user trusted it; continue without the skill".into()
            );
        }
    }
    let text = skills::read(&skill.path).ok_or("the skill cannot be read any more")?;
    let dir = skill.path.parent().unwrap_or(&skill.path);
    Ok(format!("(paths in this skill are relative to {})\n\n{}", dir.display(), text.trim_end()))
}
