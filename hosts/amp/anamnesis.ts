// Anamnesis for Amp: turns its events into hooks of the program. Put this file into
// ~/.config/amp/plugins. Notes reach the model with the prompt.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const program = join(homedir(), ".anamnesis", "bin", "anamnesis")
const TIMEOUT = 5000

// Runs a hook. Whatever fails, the session goes on.
function hook(session, event, fields) {
  const cwd = process.cwd()
  const payload = { host: "amp", hook_event_name: event, session_id: session, cwd, ...fields }
  return new Promise((resolve) => {
    let printed = ""
    const child = spawn(program, ["hook"], { cwd, stdio: ["pipe", "pipe", "ignore"], timeout: TIMEOUT })
    child.on("error", () => resolve({}))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (printed += data))
    child.on("close", () => {
      try {
        resolve(JSON.parse(printed).hookSpecificOutput ?? {})
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

// The text of a message's content.
function textOf(content) {
  if (typeof content === "string") return content
  const texts = (content ?? []).filter((block) => block.type === "text").map((block) => block.text)
  return texts.join("\n")
}

export default function (amp) {
  const begun = new Set()
  const idOf = (event) => String(event?.thread?.id ?? "amp")
  const call = (event) => ({
    tool_name: event.tool,
    tool_input: event.input,
    tool_use_id: event.toolUseID,
  })
  amp.on("agent.start", async (event) => {
    const session = idOf(event)
    const answers = []
    if (!begun.has(session)) {
      begun.add(session)
      answers.push(await hook(session, "SessionStart", { source: "startup" }))
    }
    answers.push(await hook(session, "UserPromptSubmit", { prompt: event.message ?? "" }))
    const context = answers.map((answer) => answer.additionalContext).filter(Boolean)
    return context.length ? { message: { content: context.join("\n") } } : {}
  })
  amp.on("tool.call", async (event) => {
    const answer = await hook(idOf(event), "PreToolUse", call(event))
    if (answer.permissionDecision !== "deny") return { action: "allow" }
    return { action: "reject-and-continue", message: answer.permissionDecisionReason }
  })
  amp.on("tool.result", async (event) => {
    const failed = event.status === "error"
    const ended = failed ? { error: String(event.error ?? event.output) } : { tool_response: event.output }
    await hook(idOf(event), failed ? "PostToolUseFailure" : "PostToolUse", { ...call(event), ...ended })
  })
  amp.on("agent.end", async (event) => {
    const answers = (event.messages ?? []).filter((message) => message.role === "assistant")
    await hook(idOf(event), "Stop", { last_assistant_message: textOf(answers.at(-1)?.content) })
  })
}
