"""HTTP/1.1 itself: connections, heads, bodies, answers. What is asked and answered is the application's business."""
