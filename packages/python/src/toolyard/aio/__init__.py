"""The same for asyncio. Lines are read and written by threads; whoever waits, waits on the event loop."""
