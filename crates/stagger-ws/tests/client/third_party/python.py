"""Writes every message to a file, echoes it, and closes on request."""

import asyncio
import os

import websockets


def note(line):
    with open(os.environ["NOTES"], "a", encoding="utf-8") as notes:
        notes.write(line + "\n")


async def handle(socket):
    note("open")
    async for text in socket:
        note(text)
        if text.startswith("leave "):
            _, code, reason = text.split(" ", 2)
            await socket.close(int(code), reason)
        else:
            await socket.send(text)


async def main():
    async with websockets.serve(handle, "127.0.0.1", int(os.environ["PORT"])):
        print("listening", flush=True)
        await asyncio.Future()


asyncio.run(main())
