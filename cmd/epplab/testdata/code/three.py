# train a net
epochs = 40
batch_size = 64
for epoch in range(epochs): train(batch_size)
