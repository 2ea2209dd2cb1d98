export { toChatMessages, toChatTool } from "./chat-messages.ts";
